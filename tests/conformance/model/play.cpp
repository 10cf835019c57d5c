#include "execution.h"
#include "program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <optional>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model.h"

namespace cohort::model {
namespace {

/// Whether floating numbers are equal but for roundings, which programs of values up to `scale` make.
bool close(Type type, Number a, Number b, Number scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  constexpr Number kRoundings = 8;
  return std::abs(a - b) <= kRoundings * spacing(type) * scale;
}

class Game {
 public:
  Game(const Stage& stage, const Strategy& strategy, std::uint64_t seed)
      : stage_(stage),
        seed_(seed),
        first_(static_cast<std::size_t>(strategy.extended().first_replica_id())),
        model_(stage.layout),
        execution_(strategy),
        program_(stage.layout, seed) {}

  void play() {
    for (int left = program_.length(); left > 0 && !failed_ && !ended_; --left) play_step();
  }
  [[nodiscard]] bool failed() const { return failed_; }

  /// Whether a step ended with an error, as it should; or as it should not.
  [[nodiscard]] bool ended() const { return ended_ || failed_; }

  /// Whether this is so on any worker. Where one does not come out of the program, says which program it is.
  [[nodiscard]] bool is_so_on_any_worker(bool here) const {
    try {
      return stage_.on_any_worker(here);
    } catch (const std::exception&) {
      ADD_FAILURE() << "not every worker came out of the program of MODEL_SEED=" << seed_;
      throw;
    }
  }

 private:
  void play_step() {
    const Step step = program_.next(model_);
    const Expected expected = model_.apply(step);
    const Observed observed = execution_.apply(step);
    history_ += fmt::format("\n  {}", text(step));
    if (!expected.error.empty() || !observed.error.empty()) {
      ended_ = true;
      const bool is_expected =
          expected.any_error ? !observed.error.empty() : observed.error == expected.error;
      if (!is_expected)
        fail(expected.error.empty() ? "a result" : expected.error,
             observed.error.empty() ? "a result" : observed.error + ": " + observed.message);
      return;
    }
    for (std::size_t i = 0; i < observed.values.size() && !expected.values.empty(); ++i) {
      const std::size_t replica = first_ + (observed.values.size() == 1 ? 0 : i);
      compare(fmt::format("result {}", i), expected.values[expected.values.size() == 1 ? 0 : replica],
              observed.values[i]);
    }
    for (std::size_t i = 0; i < model_.variables().size(); ++i) {
      const auto& components = model_.variables()[i].components;
      Leaves own;
      for (std::size_t local = 0; local < execution_.components(i).size(); ++local)
        own.push_back({components[components.size() == 1 ? 0 : first_ + local]});
      compare(fmt::format("variable {}", i), own, execution_.components(i));
    }
  }

  void compare(const std::string& what, const Leaves& expected, const Leaves& observed) {
    if (failed_ || same(expected, observed)) return;
    fail(what + " = " + text(expected), text(observed));
  }

  bool same(const Leaves& expected, const Leaves& observed) {
    return std::ranges::equal(expected, observed, [&](const Leaf& a, const Leaf& b) {
      return a.rows.has_value() == b.rows.has_value() && a.dense == b.dense && same(a.values, b.values) &&
             (!a.rows || same(*a.rows, *b.rows));
    });
  }

  bool same(const Array& expected, const Array& observed) {
    for (const Number element : expected.elements)
      if (std::isfinite(element)) scale_ = std::max(scale_, std::abs(element));
    return expected.type == observed.type && expected.extents == observed.extents &&
           std::ranges::equal(expected.elements, observed.elements,
                              [&](Number a, Number b) { return close(expected.type, a, b, scale_); });
  }

  void fail(const std::string& expected, const std::string& observed) {
    failed_ = true;
    ADD_FAILURE() << text(stage_.layout) << ", replica " << first_ << ": expected " << expected
                  << "\n  came out " << observed << "\n  replay: MODEL_SEED=" << seed_
                  << " MODEL_PROGRAMS=1; the program:" << history_;
  }

  const Stage& stage_;
  std::uint64_t seed_;
  std::size_t first_;
  Model model_;
  Execution execution_;
  Program program_;
  std::string history_;
  Number scale_ = 8;
  bool failed_ = false;
  bool ended_ = false;
};

}  // namespace

std::uint64_t seed_of_run() {
  const char* const told = std::getenv("MODEL_SEED");
  return told != nullptr ? std::strtoull(told, nullptr, 10) : std::random_device()();
}

int programs_of_run(int usual) {
  const char* const told = std::getenv("MODEL_PROGRAMS");
  return told != nullptr ? std::atoi(told) : usual;
}

void play(const Stage& stage, std::uint64_t seed, int programs) {
  std::optional<Strategy> strategy;
  for (int i = 0; i < programs; ++i) {
    if (!strategy) strategy.emplace(stage.make_strategy());
    Game game(stage, *strategy, seed + static_cast<std::uint64_t>(i));
    game.play();
    if (game.is_so_on_any_worker(game.failed())) return;
    // After an error a strategy of several workers is of no more use, on none of them: where the last step
    // makes no collective, only the worker that failed knows of it.
    if (game.is_so_on_any_worker(game.ended()) && stage.layout.workers > 1) strategy.reset();
  }
}

}  // namespace cohort::model
