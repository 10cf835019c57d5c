#include "roll_call.h"

#include <algorithm>
#include <cstring>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>

namespace cohort::network {

namespace {

constexpr int kRollCallTag = 0;

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

Task<> RollCall::execute() {
  begin();
  co_await until([this] { return has_ended(); });
}

void RollCall::begin() {
  distance_ = 1;
  start_round();
}

bool RollCall::has_ended() {
  while (distance_ < leaders_.size()) {
    if (!receiving_.done() || !sending_.done()) return false;
    finish_round();
    distance_ *= 2;
    if (distance_ < leaders_.size()) start_round();
  }
  return true;
}

void RollCall::start_round() {
  close_gap(distance_);
  std::memcpy(scratch_.data(), &summary_, sizeof summary_);
  // The others wait for the message, so it leaves before anything else is done.
  sending_ = leaders_.send(leaders_.neighbour(-distance_), kRollCallTag, scratch_.data(),
                           end_of(nodes_that_leave()));
  // The nodes of what arrives are not among those that are known here, nor, in any call, are all
  // contributions together longer than what there is room for.
  const std::size_t known = end_of(distance_);
  receiving_ = leaders_.receive(leaders_.neighbour(distance_), kRollCallTag, scratch_.data() + known,
                                capacity_ - known);
}

void RollCall::finish_round() {
  const std::size_t known = end_of(distance_);
  Summary arrived = kSeveralCalls;
  std::memcpy(&arrived, scratch_.data() + known, sizeof arrived);
  merge(arrived);
  if (is_unanimous())
    COHORT_CHECK(receiving_.bytes() == sizeof arrived + end_of(distance_ + nodes_that_leave()) - known);
}

void RollCall::merge(Summary arrived) noexcept {
  if (arrived == summary_) return;
  summary_ = kSeveralCalls;
  contribution_bytes_ = 0;
}

/// Moves the contributions of the last round to those before them, of which there were `nodes_before_gap_`,
/// so that the first `nodes` can leave in one message.
void RollCall::close_gap(int nodes) {
  if (nodes == nodes_before_gap_) return;
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
