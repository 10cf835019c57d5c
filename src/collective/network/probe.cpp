#include "probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "cost_model.h"

namespace cohort::network {
namespace {

using Clock = MonotonicClock;

constexpr int kTag = 1;
constexpr int kMostRounds = 50;
constexpr int kFewestRounds = 4;

/// A figure that differs by less changes choices only where costs are nearly equal.
constexpr double kFarFromBuiltIn = 1.5;

/// A figure that differs by more was not the network's: members may lack cores to run on.
constexpr double kIncredible = 100;

/// A measurement whose median is this far above its first quartile was disturbed.
constexpr double kDisturbed = 2;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What is measured, one after the other.
struct Stage {
  Figure figure;
  std::size_t messages;  ///< at once; 0 to reduce instead
  std::size_t bytes;     ///< of each

  /// The figure of one such exchange.
  [[nodiscard]] double figure_of(double seconds) const {
    return figure == Figure::kLatency
               ? seconds
               : seconds / static_cast<double>(bytes * std::max<std::size_t>(messages, 1));
  }
};

constexpr std::array kStages{
    Stage{Figure::kLatency, 1, sizeof(double)},
    Stage{Figure::kSecondsPerByte, kPartsInFlight, kMessageBytes},
    Stage{Figure::kReduceSecondsPerByte, 0, kMessageBytes},
};

/// What a leader measures with.
class Bench {
 public:
  explicit Bench(const Lane& leaders)
      : leaders_(leaders),
        partner_(leaders.index() ^ 1),
        leaving_(leaders.scratch(kPartsInFlight * kMessageBytes)),
        arriving_(leaders.scratch(kPartsInFlight * kMessageBytes)) {
    std::fill_n(leaving_.data(), kPartsInFlight * kMessageBytes, std::byte{});
    std::fill_n(arriving_.data(), kPartsInFlight * kMessageBytes, std::byte{});
  }

  /// Of an odd number of leaders, the last has nobody to exchange messages with.
  [[nodiscard]] bool takes_part_in(const Stage& stage) const {
    return stage.messages == 0 || partner_ < leaders_.size();
  }

  Task<> execute(const Stage& stage) {
    if (stage.messages == 0) {
      constexpr Arithmetic kSum{DType::kFloat32, ReduceOp::kSum};
      kSum.combine(leaving_.data(), arriving_.data(), arriving_.data(), stage.bytes / sizeof(float));
    }
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < stage.messages; ++i) {
      const std::size_t offset = i * stage.bytes;
      transfers.push_back(leaders_.receive(partner_, kTag, arriving_.data() + offset, stage.bytes));
      transfers.push_back(leaders_.send(partner_, kTag, leaving_.data() + offset, stage.bytes));
    }
    for (Transfer& transfer : transfers) co_await until([&] { return transfer.done(); });
  }

 private:
  Lane leaders_;
  int partner_;
  Wire::Scratch leaving_;
  Wire::Scratch arriving_;
};

/// The seconds of an exchange, `rounds` times, each as the mean of two: of leaders that began at different
/// times, each finds every other message there before it asks, and waits for the next one for longer.
Task<std::vector<double>> measure(Bench& bench, const Stage& stage, int rounds) {
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(rounds));
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    co_await bench.execute(stage);
    co_await bench.execute(stage);
    seconds.push_back(seconds_since(start) / 2);
  }
  co_return seconds;
}

/// Whether a figure should take the place of the built-in one.
bool is_news(double figure, double built_in) {
  const double factor = std::max(figure / built_in, built_in / figure);
  return factor > kFarFromBuiltIn && factor < kIncredible;
}

}  // namespace

Task<TuningTable> probe(const Lane* leaders, TakeMaximum take_maximum) {
  TuningTable table;
  const Clock::time_point start = Clock::now();
  std::optional<Bench> bench;
  if (leaders != nullptr) bench.emplace(*leaders);
  for (const Stage& stage : kStages) {
    // The second of two exchanges tells how many more there is time for. All take as many.
    std::array<double, 2> pace{};
    const bool takes_part = bench && bench->takes_part_in(stage);
    if (takes_part) {
      const std::vector<double> trial = co_await measure(*bench, stage, 2);
      pace[0] = trial.back();
    }
    pace[1] = seconds_since(start);
    co_await take_maximum(pace);
    const double left = std::chrono::duration<double>(kProbeBudget).count() - pace[1];
    // No stage takes more than a third of what is left.
    const int rounds = static_cast<int>(std::clamp<double>(left / 3 / (2 * pace[0]), 0, kMostRounds));
    if (rounds < kFewestRounds) continue;

    std::array<double, 2> agreed{};  // the first quartile and the disturbance, of the slowest leader
    if (takes_part) {
      std::vector<double> seconds = co_await measure(*bench, stage, rounds);
      std::ranges::sort(seconds);
      // Not the best: a message may have been there before, since the other leader began earlier.
      const double quartile = seconds[seconds.size() / 4];
      agreed = {quartile, seconds[seconds.size() / 2] / quartile};
    }
    co_await take_maximum(agreed);
    const double figure = stage.figure_of(agreed[0]);
    if (agreed[1] < kDisturbed && is_news(figure, table.value(stage.figure)))
      table.set(stage.figure, figure, TuningSource::kProbed);
  }
  co_return table;
}

}  // namespace cohort::network
