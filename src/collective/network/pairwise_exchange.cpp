#include "pairwise_exchange.h"

#include <algorithm>
#include <utility>

#include "cost_model.h"

namespace cohort::network {
namespace {

bool all_done(std::vector<Transfer>& transfers) {
  return std::ranges::all_of(transfers, [](Transfer& transfer) { return transfer.done(); });
}

}  // namespace

PairwiseExchange::PairwiseExchange(Wire& wire, int tag, std::size_t longest)
    : wire_(wire),
      tag_(tag),
      part_bytes_(std::clamp<std::size_t>(longest, 1, wire.message_bytes())),
      parts_per_step_(std::max<std::size_t>((longest + part_bytes_ - 1) / part_bytes_, 1)) {}

void PairwiseExchange::add_step(std::vector<Leaving> leaving, std::vector<Arriving> arriving) {
  most_blocks_ = std::max(most_blocks_, leaving.size());
  steps_.push_back({std::move(leaving), std::move(arriving)});
}

std::size_t PairwiseExchange::in_flight() const noexcept {
  constexpr std::size_t kLeast = 4;
  return std::max(kPartsInFlight * wire_.message_bytes() / (most_blocks_ * part_bytes_), kLeast);
}

PairwiseExchange::Transfers PairwiseExchange::start_sending(std::size_t part) {
  const std::size_t offset = part % parts_per_step_ * part_bytes_;
  Transfers transfers;
  for (const Leaving& block : steps_[part / parts_per_step_].leaving) {
    if (offset >= block.bytes) continue;
    transfers.push_back(
        wire_.send(block.to, tag_, block.data + offset, std::min(part_bytes_, block.bytes - offset)));
  }
  return transfers;
}

PairwiseExchange::Transfers PairwiseExchange::start_receiving(std::size_t part) {
  const std::size_t offset = part % parts_per_step_ * part_bytes_;
  Transfers transfers;
  for (const Arriving& block : steps_[part / parts_per_step_].arriving) {
    if (offset >= block.bytes) continue;
    transfers.push_back(
        wire_.receive(block.from, tag_, block.into + offset, std::min(part_bytes_, block.bytes - offset)));
  }
  return transfers;
}

// A part is sent once those before it, but for a few, have been received. So all parts of a number arrive in
// the end if those of lower numbers do, and members cannot wait for each other in a circle.

Task<> PairwiseExchange::send() {
  // With one other node nobody else's data is in the way.
  const std::size_t ahead = steps_.size() == 1 ? parts() : in_flight() / 2;
  std::deque<Transfers> leaving;
  for (std::size_t part = 0; part < parts(); ++part) {
    co_await until([&] { return part < come_ + ahead; });
    leaving.push_back(start_sending(part));
    if (leaving.size() < in_flight()) continue;
    co_await until([&] { return all_done(leaving.front()); });
    leaving.pop_front();
  }
  co_await until([&] { return std::ranges::all_of(leaving, all_done); });
}

Task<> PairwiseExchange::receive() {
  std::deque<Transfers> awaited;
  for (std::size_t part = 0; come_ < parts();) {
    if (part < parts() && awaited.size() < in_flight()) {
      awaited.push_back(start_receiving(part++));
      continue;
    }
    co_await until([&] { return all_done(awaited.front()); });
    awaited.pop_front();
    ++come_;
  }
}

Task<> PairwiseExchange::arrival(std::size_t step) const {
  co_await until([this, step] { return come_ >= (step + 1) * parts_per_step_; });
}

}  // namespace cohort::network
