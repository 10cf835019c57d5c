#include <cohort/collective/collective_call.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

using Extent = CollectiveTraits::Extent;

std::size_t own_block_bytes(const CollectiveCall& call, int rank) {
  const std::size_t elements =
      call.counts.empty() ? call.elements : call.counts[static_cast<std::size_t>(rank)];
  return elements * size_of(call.dtype);
}

std::size_t all_blocks_bytes(const CollectiveCall& call, int size) {
  const std::size_t elements = call.counts.empty()
                                   ? call.elements * static_cast<std::size_t>(size)
                                   : std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
  return elements * size_of(call.dtype);
}

std::size_t bytes_of(Extent extent, const CollectiveCall& call, int rank, int size) {
  switch (extent) {
    case Extent::kNothing: return 0;
    case Extent::kOneBlock: return own_block_bytes(call, rank);
    case Extent::kAllBlocks: return all_blocks_bytes(call, size);
  }
  return 0;
}

bool is_always_in_place(CollectiveKind kind) {
  return traits_of(kind).in_place == CollectiveTraits::InPlace::kAlways;
}

/// Whether the data of the others is that of this member.
bool is_source(const CollectiveCall& call, int rank) {
  return is_message(call.kind) ? call.kind == CollectiveKind::kSend : call.root == rank;
}

std::string describe(const CallSignature& call) {
  const bool urgent = call.priority == Priority::kUrgent;
  if (call.kind == CollectiveKind::kBarrier || call.kind == CollectiveKind::kSplit)
    return fmt::format("{}({})", to_string(call.kind), urgent ? "urgent" : "");
  std::string text = fmt::format("{}({}[{}]", to_string(call.kind), to_string(call.dtype), call.elements);
  if (reduces(call.kind)) text += fmt::format(", {}", to_string(static_cast<ReduceOp>(call.op)));
  if (has_root(call.kind)) text += fmt::format(", root {}", call.root);
  if (call.layout != 0) text += fmt::format(", layout {:08x}", call.layout & 0xffffffffu);
  if (call.device != DeviceKind::kCpu) text += ", on GPUs";
  if (call.captured) text += ", in a graph";
  if (urgent) text += ", urgent";
  return text + ")";
}

std::string list_members(std::span<const int> ranks, std::span<const MemberInfo> members) {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(describe(rank, members[static_cast<std::size_t>(rank)]));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::size_t input_bytes(const CollectiveCall& call, int rank, int size) noexcept {
  return call.input == nullptr ? 0 : bytes_of(traits_of(call.kind).input, call, rank, size);
}

std::size_t output_bytes(const CollectiveCall& call, int rank, int size) noexcept {
  return call.output == nullptr ? 0 : bytes_of(traits_of(call.kind).output, call, rank, size);
}

bool reads_input(const CollectiveCall& call, int rank) noexcept {
  return call.input != nullptr && (!is_always_in_place(call.kind) || is_source(call, rank));
}

bool writes_output(const CollectiveCall& call, int rank) noexcept {
  return call.output != nullptr && (!is_always_in_place(call.kind) || !is_source(call, rank));
}

OwnedCall::OwnedCall(const CollectiveCall& call)
    : call_(call), counts_(call.counts.begin(), call.counts.end()) {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (call.buffers[i] != nullptr) buffers_[i] = *call.buffers[i];
  }
  if (call.stands_for != nullptr) {
    stands_for_ = std::make_unique<const OwnedCall>(*call.stands_for);
    call_.stands_for = &stands_for_->get();
  }
  // A moved vector keeps its elements where they are, so this stays right when the object moves.
  call_.counts = counts_;
  call_.buffers = {};
}

std::string describe(const CollectiveCall& call) {
  if (call.stands_for != nullptr) return describe(*call.stands_for);
  if (is_message(call.kind)) {
    return fmt::format("{}({}[{}], {} member {}, tag {})", to_string(call.kind), to_string(call.dtype),
                       call.elements, call.kind == CollectiveKind::kSend ? "to" : "from", call.root,
                       call.tag);
  }
  return describe(signature(call, 0));
}

CallSignature signature(const CollectiveCall& call, std::uint64_t sequence) {
  if (call.stands_for != nullptr) return signature(*call.stands_for, sequence);
  CallSignature result;
  result.sequence = sequence;
  result.elements = call.elements;
  result.kind = call.kind;
  result.dtype = call.dtype;
  result.root = call.root;
  result.layout = call.layout;
  result.priority = call.priority;
  result.device = call.device.kind();
  result.captured = call.captured;
  result.op = reduces(call.kind) ? static_cast<std::uint8_t>(call.op) : std::uint8_t{0};
  if (!call.counts.empty()) {
    // Members of an uneven all-gather contribute different amounts, but must agree on the list.
    result.elements = 0;
    Fingerprint counts;
    if (call.layout != 0) counts.add(call.layout);
    for (const std::size_t count : call.counts) {
      result.elements += count;
      counts.add(count);
    }
    result.layout = counts.value();
  }
  return result;
}

std::string describe(int member, const MemberInfo& info) {
  return fmt::format("member {} (worker {}, host {})", member, info.worker, info.host);
}

std::optional<std::string> explain_mismatch(std::span<const CallSignature> calls,
                                            std::span<const int> callers, std::span<const MemberInfo> members,
                                            int& odd_member) {
  const auto agrees_with_first = [&](const CallSignature& other) { return other == calls.front(); };
  if (std::all_of(calls.begin(), calls.end(), agrees_with_first)) return std::nullopt;

  // The signature that more than half of the members share is taken for the right one. Where there is none,
  // that of the lowest rank among the most frequent ones only decides which members count as odd.
  std::size_t usual = 0;
  std::ptrdiff_t votes = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::ptrdiff_t count = std::count(calls.begin(), calls.end(), calls[i]);
    if (count > votes) {
      votes = count;
      usual = i;
    }
  }
  const bool majority = 2 * votes > std::ssize(calls);
  // Calls of the other priority shift the order, so two calls may look alike without being the same one.
  const bool numbers_differ = std::ranges::any_of(
      calls, [&](const CallSignature& other) { return other.sequence != calls.front().sequence; });
  const bool layouts_differ = std::ranges::any_of(
      calls, [&](const CallSignature& other) { return other.layout != calls.front().layout; });
  const auto described = [&](const CallSignature& call) {
    return numbers_differ ? fmt::format("{} as call #{}", describe(call), call.sequence) : describe(call);
  };
  std::vector<std::string> listed;
  odd_member = -1;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const bool odd = calls[i] != calls[usual];
    if (odd && odd_member < 0) odd_member = callers[i];
    if (majority && !odd) continue;
    constexpr std::size_t kListed = 4;
    if (listed.size() > kListed) continue;
    listed.push_back(listed.size() == kListed
                         ? "and more"
                         : fmt::format("{} called {}",
                                       describe(callers[i], members[static_cast<std::size_t>(callers[i])]),
                                       described(calls[i])));
  }
  const std::string others = majority ? fmt::format("the other {} called {}", votes, described(calls[usual]))
                                      : "none of these calls is that of most members";
  return fmt::format(
      "{} #{}: members disagree: {}; {}. All members must make the same calls in the same order, with the "
      "same number of elements, dtype, operator, root and priority; look at the last batch of the odd "
      "member, or pad it.{}",
      to_string(calls[usual].kind), calls[usual].sequence, fmt::join(listed, "; "), others,
      layouts_differ
          ? " A layout is a digest of what a call is for, and of what lies where in its tensor: the "
            "shapes in a pack, the structure of a value, the kind of a variable."
          : "");
}

std::string describe_deadline(const CollectiveCall& call, double seconds) {
  return fmt::format("deadline of {:.3g} s{}", seconds, call.timeout_seconds ? " (set for this call)" : "");
}

std::string explain_missing(const CollectiveCall& call, std::uint64_t sequence, std::span<const int> missing,
                            std::span<const MemberInfo> members, double waited_seconds) {
  return fmt::format(
      "{} #{}: {} passed while waiting in {}; missing: {}. They are stopped, busy elsewhere, wait for others "
      "themselves, or took another path through the program; raise the time-out ({}) if they are only slow.",
      to_string(call.as_called().kind), sequence, describe_deadline(call, waited_seconds), describe(call),
      list_members(missing, members),
      call.timeout_seconds ? "timeout_seconds of this call"
                           : "timeout_seconds, or COHORT_COLLECTIVE_TIMEOUT_SECONDS");
}

}  // namespace cohort
