#include "cost_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::network {
namespace {

/// A choice may be slower than the best by this much.
constexpr double kNearly = 1.1;

/// More lanes that gain less than this show that the link is full.
constexpr double kGain = 1.05;

double cost(const LaneRate& rate, double reduce_seconds_per_byte) {
  return 2 * rate.seconds_per_byte + reduce_seconds_per_byte / rate.lanes;
}

}  // namespace

const LaneRate& choose_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte) {
  const auto cost_of = [&](const LaneRate& rate) { return cost(rate, reduce_seconds_per_byte); };
  const double best = cost_of(*std::ranges::min_element(rates, {}, cost_of));
  return *std::ranges::find_if(rates, [&](const LaneRate& rate) { return cost_of(rate) <= kNearly * best; });
}

bool may_gain_from_more_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte) {
  if (rates.size() < 2) return true;
  const LaneRate& before = rates[rates.size() - 2];
  return cost(before, reduce_seconds_per_byte) > kGain * cost(rates.back(), reduce_seconds_per_byte);
}

namespace {

using Clock = MonotonicClock;

constexpr int kProbeTag = 1;
constexpr int kMostRounds = 50;
constexpr int kFewestRounds = 4;
constexpr int kRoundsBetweenLooks = 10;  ///< at whether there have been enough

/// A figure that differs by less changes choices only where costs are nearly equal.
constexpr double kFarFromBuiltIn = 1.5;

/// A figure that differs by more was not the network's: members may lack cores to run on.
constexpr double kIncredible = 100;

/// A measurement whose median is this far above its first quartile was disturbed.
constexpr double kDisturbed = 2;
/// One whose median is not further above it needs no more rounds.
constexpr double kUndisturbed = 1.02;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What is measured at a time.
struct Stage {
  int lanes = 1;             ///< whose members take part
  std::size_t messages = 0;  ///< that each of them sends at once; 0 to reduce instead
  std::size_t bytes = 0;     ///< of each

  [[nodiscard]] std::size_t bytes_of_member() const noexcept { return messages * bytes; }
};

constexpr Stage kLatencyStage{.messages = 1, .bytes = sizeof(double)};
constexpr Stage kReduceStage{.bytes = kMessageBytes};

/// A node sends the same bytes, however many lanes they go by: those of a long call's parts in flight.
Stage stage_of(int lanes) {
  const auto count = static_cast<std::size_t>(lanes);
  const std::size_t messages = (kPartsInFlight + count - 1) / count;
  return {.lanes = lanes, .messages = messages, .bytes = kPartsInFlight * kMessageBytes / (count * messages)};
}

/// What a member measures with: its memory, and the member of its lane on the neighbouring node.
class Bench {
 public:
  Bench(Wire& wire, const Topology& topology)
      : number_(topology.own_local_rank()), lane_(wire, topology.own_lane(), topology.own_node()) {
    if (lane_.size() == 0) return;
    // The first stage of this member has the most messages.
    const int fewest =
        std::min(static_cast<int>(std::bit_ceil(static_cast<unsigned>(number_ + 1))), topology.lanes());
    const std::size_t room = std::max(stage_of(fewest).bytes_of_member(), kMessageBytes);
    leaving_ = lane_.scratch(kMessageBytes);
    arriving_ = lane_.scratch(room);
    std::fill_n(leaving_.data(), kMessageBytes, std::byte{});
    std::fill_n(arriving_.data(), room, std::byte{});
  }

  /// Of an odd number of nodes, the last one's members have nobody to exchange messages with.
  [[nodiscard]] bool takes_part_in(const Stage& stage) const {
    return number_ < stage.lanes && (stage.messages == 0 || partner() < lane_.size());
  }

  Task<> execute(const Stage& stage) {
    if (stage.messages == 0) {
      constexpr Arithmetic kSum{DType::kFloat32, ReduceOp::kSum};
      kSum.combine(leaving_.data(), arriving_.data(), arriving_.data(), stage.bytes / sizeof(float));
    }
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < stage.messages; ++i) {
      transfers.push_back(
          lane_.receive(partner(), kProbeTag, arriving_.data() + i * stage.bytes, stage.bytes));
      transfers.push_back(lane_.send(partner(), kProbeTag, leaving_.data(), stage.bytes));
    }
    for (Transfer& transfer : transfers) co_await until([&] { return transfer.done(); });
  }

 private:
  [[nodiscard]] int partner() const noexcept { return lane_.index() ^ 1; }

  int number_;  ///< of the lane
  Lane lane_;
  Wire::Scratch leaving_;
  Wire::Scratch arriving_;
};

/// Adds the seconds of an exchange, `rounds` times, each as the mean of two: of members that began at
/// different times, each finds every other message there before it asks, and waits for the next one for
/// longer.
Task<> measure(Bench& bench, const Stage stage, int rounds, std::vector<double>& seconds) {
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    co_await bench.execute(stage);
    co_await bench.execute(stage);
    seconds.push_back(seconds_since(start) / 2);
  }
}

class Probe {
 public:
  Probe(Wire& wire, const Topology& topology, TakeMaximum take_maximum)
      : bench_(wire, topology), lanes_(topology.lanes()), take_maximum_(std::move(take_maximum)) {}

  Task<> measure_latency() {
    const std::optional<double> seconds = co_await seconds_of(kLatencyStage);
    if (seconds) set_if_news(Figure::kLatency, *seconds);
  }

  Task<> measure_reduction() {
    const std::optional<double> seconds = co_await seconds_of(kReduceStage);
    if (seconds)
      set_if_news(Figure::kReduceSecondsPerByte, *seconds / static_cast<double>(kReduceStage.bytes));
  }

  /// By one lane, two, four and so on, to the number from which on more of them gain nothing.
  Task<> measure_link() {
    const double gamma = table_.value(Figure::kReduceSecondsPerByte);
    std::vector<LaneRate> rates;
    bool is_complete = false;
    for (int lanes = 1; !is_complete; lanes = std::min(2 * lanes, lanes_)) {
      const Stage stage = stage_of(lanes);
      const std::optional<double> seconds = co_await seconds_of(stage);
      if (!seconds) break;
      rates.push_back({lanes, *seconds / (lanes * static_cast<double>(stage.bytes_of_member()))});
      is_complete = lanes == lanes_ || !may_gain_from_more_lanes(rates, gamma);
    }
    if (rates.empty()) co_return;
    const LaneRate chosen = choose_lanes(rates, gamma);
    set_if_news(Figure::kSecondsPerByte, chosen.seconds_per_byte);
    if (is_complete && chosen.lanes != std::min(kBuiltInLanes, lanes_))
      table_.set(Figure::kLanes, chosen.lanes, TuningSource::kProbed);
  }

  [[nodiscard]] const TuningTable& table() const noexcept { return table_; }

 private:
  /// Of one execution, on the slowest member; nothing where there is no time left for it, or it was
  /// disturbed. All members get the same.
  Task<std::optional<double>> seconds_of(const Stage stage) {
    // The second of two exchanges tells how many more there is time for. All take as many.
    std::array<double, 2> pace{};
    const bool takes_part = bench_.takes_part_in(stage);
    if (takes_part) {
      std::vector<double> trial;
      co_await measure(bench_, stage, 2, trial);
      pace[0] = trial.back();
    }
    pace[1] = seconds_since(start_);
    co_await take_maximum_(pace);
    const double left = std::chrono::duration<double>(kProbeBudget).count() - pace[1];
    // No stage takes more than a third of what is left.
    const int rounds = static_cast<int>(std::clamp<double>(left / 3 / (2 * pace[0]), 0, kMostRounds));
    if (rounds < kFewestRounds) co_return std::nullopt;

    std::vector<double> seconds;
    std::array<double, 2> agreed{0, kDisturbed};  // the first quartile and the disturbance
    for (int done = 0; done < rounds && agreed[1] > kUndisturbed; done += kRoundsBetweenLooks) {
      agreed = {};
      if (takes_part) {
        co_await measure(bench_, stage, std::min(kRoundsBetweenLooks, rounds - done), seconds);
        std::ranges::sort(seconds);
        // Not the best: a message may have been there before, since the other member began earlier.
        const double quartile = seconds[seconds.size() / 4];
        agreed = {quartile, seconds[seconds.size() / 2] / quartile};
      }
      co_await take_maximum_(agreed);
    }
    if (agreed[1] >= kDisturbed) co_return std::nullopt;
    co_return agreed[0];
  }

  /// A figure that is far from the built-in one takes its place.
  void set_if_news(Figure figure, double value) {
    const double built_in = table_.value(figure);
    const double factor = std::max(value / built_in, built_in / value);
    if (factor > kFarFromBuiltIn && factor < kIncredible) table_.set(figure, value, TuningSource::kProbed);
  }

  Clock::time_point start_ = Clock::now();
  TuningTable table_;
  Bench bench_;
  int lanes_;  ///< that there can be
  TakeMaximum take_maximum_;
};

}  // namespace

Task<TuningTable> probe(Wire& wire, const Topology& topology, TakeMaximum take_maximum) {
  Probe measurement(wire, topology, std::move(take_maximum));
  co_await measurement.measure_latency();
  co_await measurement.measure_reduction();
  co_await measurement.measure_link();
  co_return measurement.table();
}

}  // namespace cohort::network
