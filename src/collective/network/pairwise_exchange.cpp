#include "pairwise_exchange.h"

#include <algorithm>
#include <deque>
#include <utility>

#include <cohort/base/monotonic_clock.h>

namespace cohort::network {
namespace {

/// A message that is held back leaves after this part of the call's deadline, or after that time.
constexpr double kPausesPerTimeout = 20;
constexpr std::chrono::duration<double> kLongestPause{1};

bool all_done(std::vector<Transfer>& transfers) {
  return std::ranges::all_of(transfers, [](Transfer& transfer) { return transfer.done(); });
}

std::size_t bytes_of_message(const PairwiseShape& shape, std::size_t message_bytes) {
  return std::clamp<std::size_t>(shape.longest, 1, message_bytes);
}

}  // namespace

PairwiseWindow window_of(const PairwiseShape& shape, std::size_t message_bytes,
                         const CostConstants& network) {
  // A message that waits for its receiver takes three latencies: it asks, is asked for, and comes.
  constexpr double kLatencies = 3;
  constexpr std::size_t kFewestMessages = 4;
  const std::size_t round_bytes = bytes_of_message(shape, message_bytes) * shape.blocks;
  const double meanwhile =
      kLatencies * network.latency_seconds / (network.seconds_per_byte * static_cast<double>(round_bytes));
  const std::size_t few = std::max({kFewestMessages * message_bytes / round_bytes, std::size_t{2},
                                    static_cast<std::size_t>(meanwhile) + 1});
  // With one other node nobody else's data is in the way.
  constexpr std::size_t kAll = std::size_t{1} << 40;
  return {.ahead = shape.nodes == 2 ? kAll : few, .in_flight = 2 * few};
}

PairwiseExchange::PairwiseExchange(Wire& wire, int tag, const PairwiseShape& shape,
                                   const CostConstants& network, std::chrono::duration<double> timeout)
    : wire_(wire),
      tag_(tag),
      message_bytes_(bytes_of_message(shape, wire.message_bytes())),
      rounds_per_step_(std::max<std::size_t>((shape.longest + message_bytes_ - 1) / message_bytes_, 1)),
      window_(window_of(shape, wire.message_bytes(), network)),
      pause_(timeout.count() > 0 ? std::min(timeout / kPausesPerTimeout, kLongestPause) : kLongestPause) {}

void PairwiseExchange::add_step(std::vector<Leaving> leaving, std::vector<Arriving> arriving) {
  steps_.push_back({std::move(leaving), std::move(arriving)});
}

template <class Block, class Start>
PairwiseExchange::Transfers PairwiseExchange::start(std::size_t round, std::vector<Block> Step::*blocks,
                                                    Start start_message) {
  const std::size_t offset = round % rounds_per_step_ * message_bytes_;
  Transfers transfers;
  for (const Block& block : steps_[round / rounds_per_step_].*blocks) {
    if (offset < block.bytes)
      transfers.push_back(start_message(block, offset, std::min(message_bytes_, block.bytes - offset)));
  }
  return transfers;
}

// A round is sent once those before it, but for a few, have been received. So all messages of a round arrive
// in the end if those of earlier rounds do, and members cannot wait for each other in a circle, whatever the
// few of each are.

Task<> PairwiseExchange::send() {
  std::deque<Transfers> under_way;
  for (std::size_t round = 0; round < rounds(); ++round) {
    const MonotonicClock::time_point since = MonotonicClock::now();
    co_await until(
        [&] { return round < rounds_received_ + window_.ahead || MonotonicClock::now() - since >= pause_; });
    under_way.push_back(
        start(round, &Step::leaving, [this](const Leaving& block, std::size_t offset, std::size_t bytes) {
          return wire_.send(block.to, tag_, block.data + offset, bytes);
        }));
    if (under_way.size() < window_.in_flight) continue;
    co_await until([&] { return all_done(under_way.front()); });
    under_way.pop_front();
  }
  co_await until([&] { return std::ranges::all_of(under_way, all_done); });
}

Task<> PairwiseExchange::receive() {
  std::deque<Transfers> awaited;
  for (std::size_t round = 0; rounds_received_ < rounds();) {
    if (round < rounds() && awaited.size() < window_.in_flight) {
      awaited.push_back(start(round++, &Step::arriving,
                              [this](const Arriving& block, std::size_t offset, std::size_t bytes) {
                                return wire_.receive(block.from, tag_, block.into + offset, bytes);
                              }));
      continue;
    }
    co_await until([&] { return all_done(awaited.front()); });
    awaited.pop_front();
    ++rounds_received_;
  }
}

Task<> PairwiseExchange::arrival(std::size_t step) const {
  co_await until([this, step] { return rounds_received_ >= (step + 1) * rounds_per_step_; });
}

}  // namespace cohort::network
