#include "call_planner.h"

#include <algorithm>

#include "contribution.h"

namespace cohort::node {
namespace {

CallDetails details_of(const CollectiveCall& call) {
  if (call.counts.empty()) return {call.elements, call.layout, call.root};
  const CallSignature exact = signature(call, 0);
  return {exact.elements, exact.layout, exact.root};
}

constexpr std::uint64_t kExactElements = std::uint64_t{1} << 16;
constexpr std::int64_t kExactRoots = 32;

/// Whether the fingerprint says all of it.
bool is_exact(const CallDetails& details) noexcept {
  return details.elements < kExactElements && details.layout == 0 && details.root < kExactRoots;
}

/// 32 bits of what members must agree on. Exact ones are like no other call's: kind, dtype and operator
/// have 11 bits, the root 5, the elements 16. Otherwise the rest is mixed into the last ones.
std::uint32_t fingerprint(const CollectiveCall& call, const CallDetails& details) noexcept {
  constexpr auto kKinds =
      static_cast<std::uint32_t>(std::ranges::count(kCollectives, false, &CollectiveTraits::is_message));
  constexpr auto kDTypes = static_cast<std::uint32_t>(kAllDTypes.size());
  constexpr std::uint32_t kOps = 7;
  static_assert(2 * kKinds * kDTypes * kOps <= std::uint32_t{1} << 11,
                "kind, dtype and operator need more bits of the fingerprint");
  std::uint32_t head = is_exact(details) ? 0 : 1;
  head = head * kKinds + static_cast<std::uint32_t>(call.kind);
  head = head * kDTypes + static_cast<std::uint32_t>(call.dtype);
  head = head * kOps + static_cast<std::uint32_t>(call.op);
  const auto root = static_cast<std::uint32_t>(details.root);
  const std::uint64_t rest = details.elements / kExactElements ^ details.layout ^
                             static_cast<std::uint64_t>(root / kExactRoots) << 40;
  const auto mixed = static_cast<std::uint32_t>(rest * 0x9e3779b97f4a7c15u >> 48);
  return head << 21 | root % kExactRoots << 16 |
         (static_cast<std::uint32_t>(details.elements % kExactElements) ^ mixed);
}

}  // namespace

void CallPlanner::make_plan(const CollectiveCall& call) {
  // Calls with counts are planned each time: no member is -1, so this key fits no call.
  planned_ = call.counts.empty()
                 ? PlanKey{call.elements, call.layout, call.root, call.kind, call.dtype, call.op}
                 : PlanKey{};
  const CallDetails details = details_of(call);
  const std::size_t bytes = contributed_bytes(call, members_);
  // Members must also make an urgent call at the same place among all calls: the details have its number.
  const bool payload_has_details = !is_exact(details) || priority_ == Priority::kUrgent;
  plan_ = {fingerprint(call, details),
           details,
           payload_has_details,
           block_elements(call),
           bytes,
           bytes <= kPayloadBytes && !payload_has_details,
           reduces(call.kind) ? reduction_kernel(call.dtype, call.op) : nullptr,
           pack_unnumbered(call)};
}

}  // namespace cohort::node
