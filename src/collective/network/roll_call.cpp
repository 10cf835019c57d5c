#include "roll_call.h"

#include <algorithm>
#include <cstring>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>

namespace cohort::network {

namespace {

constexpr int kTag = 0;

}  // namespace

RollCall::RollCall(Lane leaders, const Topology& topology, std::size_t piggyback_bytes)
    : leaders_(leaders),
      capacity_(2 * sizeof(Summary) + piggyback_bytes),
      scratch_(leaders.scratch(capacity_)),
      members_{0} {
  for (int step = 0; step < leaders_.size(); ++step) {
    const int on_node = topology.members_on(leaders_.neighbour(step));
    members_.push_back(members_.back() + static_cast<std::size_t>(on_node));
  }
}

RollCall::Summary RollCall::summary_of(const CallSignature& call) noexcept {
  // Does not compile once there is a field that is not compared.
  const auto& [sequence, elements, layout, kind, dtype, op, priority, root, device, captured] = call;
  Fingerprint fingerprint;
  fingerprint.add(sequence).add(elements).add(layout);
  const std::uint64_t arguments = static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(dtype) << 8 |
                                  std::uint64_t{op} << 16 | static_cast<std::uint64_t>(priority) << 24 |
                                  static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32;
  fingerprint.add(arguments).add(static_cast<std::uint64_t>(device) << 1 | std::uint64_t{captured});
  return std::max(fingerprint.value(), kSeveralCalls + 1);
}

std::byte* RollCall::answer(const std::optional<CallSignature>& call, std::size_t contribution_bytes) {
  summary_ = call ? summary_of(*call) : kSeveralCalls;
  contribution_bytes_ = call ? contribution_bytes : 0;
  nodes_before_gap_ = 1;
  return scratch_.data() + sizeof(Summary);
}

/// Where the contributions of the first `nodes` end, and those of the next node begin, without a gap.
std::size_t RollCall::end_of(int nodes) const noexcept {
  return sizeof(Summary) + members_[static_cast<std::size_t>(nodes)] * contribution_bytes_;
}

Task<> RollCall::execute() {
  for (int distance = 1; distance < leaders_.size(); distance *= 2) {
    close_gap(distance);
    std::memcpy(scratch_.data(), &summary_, sizeof summary_);
    // The nodes of what arrives are not among those that are known here, nor, in any call, are all
    // contributions together longer than what there is room for.
    const int leaving = std::min(distance, leaders_.size() - distance);
    std::byte* const arriving = scratch_.data() + end_of(distance);
    Transfer receiving =
        leaders_.receive(leaders_.neighbour(distance), kTag, arriving, capacity_ - end_of(distance));
    Transfer sending = leaders_.send(leaders_.neighbour(-distance), kTag, scratch_.data(), end_of(leaving));
    co_await until([&] { return receiving.done() && sending.done(); });
    Summary arrived = kSeveralCalls;
    std::memcpy(&arrived, arriving, sizeof arrived);
    merge(arrived);
    if (is_unanimous())
      COHORT_CHECK(receiving.bytes() == sizeof arrived + end_of(distance + leaving) - end_of(distance));
  }
}

void RollCall::merge(Summary arrived) noexcept {
  if (arrived == summary_) return;
  summary_ = kSeveralCalls;
  contribution_bytes_ = 0;
}

/// Moves the contributions of the last round to those before them, of which there were `nodes_before_gap_`,
/// so that the first `nodes` can leave in one message.
void RollCall::close_gap(int nodes) {
  std::byte* const to = scratch_.data() + end_of(nodes_before_gap_);
  std::memmove(to, to + sizeof(Summary), end_of(nodes) - end_of(nodes_before_gap_));
  nodes_before_gap_ = nodes;
}

std::span<const std::byte> RollCall::payload_of(int node) const {
  const int step = (node - leaders_.index() + leaders_.size()) % leaders_.size();
  const std::size_t gap = step < nodes_before_gap_ ? 0 : sizeof(Summary);
  return {scratch_.data() + end_of(step) + gap, end_of(step + 1) - end_of(step)};
}

}  // namespace cohort::network
