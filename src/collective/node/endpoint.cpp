#include "endpoint.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cohort::node {
namespace {

using namespace std::chrono_literals;

/// How long a member that has left is given for the reason to become known, where workers are watched.
constexpr auto kTimeForTheReason = 200ms;

/// How long members that have found a difference wait for each other's exact calls.
constexpr auto kTimeToDescribe = 500ms;

/// How long the end of another process may go unnoticed.
constexpr auto kTimeToNotice = 500ms;

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
  constexpr std::uint32_t kKinds = static_cast<std::uint32_t>(CollectiveKind::kBarrier) + 1;
  constexpr auto kDTypes = static_cast<std::uint32_t>(kAllDTypes.size());
  constexpr std::uint32_t kOps = 7;
  static_assert(2 * kKinds * kDTypes * kOps <= std::uint32_t{1} << 11);
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

Endpoint::Endpoint(std::shared_ptr<NodeGroup> group, int local_rank, Priority priority)
    : group_(std::move(group)),
      position_{local_rank, group_->size()},
      priority_(priority),
      priority_blocks_(group_->priority_blocks(priority).data()),
      own_(*priority_blocks_[local_rank]),
      group_failure_(group_->control_block(0).failure.state),
      pointers_(static_cast<std::size_t>(group_->size())),
      more_pointers_(static_cast<std::size_t>(group_->size())) {}

void Endpoint::make_plan(const CollectiveCall& call) {
  // Calls with counts are planned each time: no member is -1, so this key fits no call.
  planned_ = call.counts.empty()
                 ? PlanKey{call.elements, call.layout, call.root, call.kind, call.dtype, call.op}
                 : PlanKey{};
  const CallDetails details = details_of(call);
  const std::size_t bytes = contributed_bytes(call, position_.size);
  // That urgent calls are at the same place among all calls is part of the agreement.
  const bool payload_has_details = !is_exact(details) || priority_ == Priority::kUrgent;
  plan_ = {fingerprint(call, details),
           details,
           payload_has_details,
           block_elements(call),
           bytes,
           bytes <= kPayloadBytes && !payload_has_details,
           reduces(call.kind) ? reduction_kernel(call.dtype, call.op) : nullptr};
}

void Endpoint::fail_again() { fail(failure_ ? *failure_ : group_->failure()); }

bool Endpoint::announced(int member) const noexcept {
  const std::uint64_t word = peer(member).lines[line_of(sequence_)].word.load(std::memory_order_acquire);
  return word >> 32 == (sequence_ & 0xffffffffu);
}

bool Endpoint::details_differ() const noexcept {
  // Equal words that are not exact, or too long for the line: so all of the payloads begin with details.
  for (int member = 0; member < position_.size; ++member) {
    if (std::memcmp(payload_of(member), payload_of(position_.rank), sizeof(CallDetails)) != 0) return true;
  }
  return false;
}

// Announcements are waited for one member after the other; a difference is one whoever is still missing.
void Endpoint::notice_difference() noexcept {
  if (awaited_ != Awaited::kAnnouncements) return;
  for (int member = next_to_check_; member < position_.size; ++member) {
    const std::uint64_t word = peer(member).lines[line_of(sequence_)].word.load(std::memory_order_acquire);
    if (word >> 32 == word_ >> 32 && word != word_) next_to_check_ = member;
    if (other_priority(member).described_number.load(std::memory_order_acquire) == number_ + 1) {
      disagreement_ = true;
      next_to_check_ = position_.size;
    }
  }
}

const PriorityBlock& Endpoint::other_priority(int member) const noexcept {
  const Priority other = priority_ == Priority::kNormal ? Priority::kUrgent : Priority::kNormal;
  return *group_->priority_blocks(other)[static_cast<std::size_t>(member)];
}

/// What a member has called instead, or nothing if it has not said so.
const PriorityBlock* Endpoint::find_description(int member) const noexcept {
  const PriorityBlock& same = peer(member);
  if (same.described.load(std::memory_order_acquire) == sequence_) return &same;
  const PriorityBlock& other = other_priority(member);
  return other.explained_number.load(std::memory_order_acquire) == number_ + 1 ? &other : nullptr;
}

Task<Endpoint::Signatures> Endpoint::collect_signatures(const CollectiveCall& call) {
  describe_call(call);
  own_.explained_number.store(number_ + 1, std::memory_order_release);
  const Deadline deadline = Deadline::after(kTimeToDescribe);
  co_await until([&] {
    for (int member = 0; member < position_.size; ++member) {
      if (find_description(member) == nullptr) return deadline.expired() || group_->failed();
    }
    return true;
  });
  Signatures signatures;
  for (int member = 0; member < position_.size; ++member) {
    const PriorityBlock* const description = find_description(member);
    if (description == nullptr) continue;
    signatures.calls.push_back(description->signature);
    signatures.ranks.push_back(group_->rank_of(member));
  }
  co_return signatures;
}

Task<> Endpoint::explain_disagreement(const CollectiveCall& call) {
  const Signatures signatures = co_await collect_signatures(call);
  int odd = 0;
  const std::optional<std::string> mismatch =
      explain_mismatch(signatures.calls, signatures.ranks, group_->members(), odd);
  fail(InvalidArgument(
      ErrorOrigin{name_of(call), odd, mismatch ? group_->host_of(odd) : ""},
      mismatch.value_or(fmt::format("{}: members disagree, and those who differ did not say what they called",
                                    name_of(call)))));
}

bool Endpoint::all_have_pieces(std::uint64_t pieces) noexcept {
  await(Awaited::kPieces, pieces);
  for (; next_to_check_ < position_.size; ++next_to_check_) {
    if (peer(next_to_check_).pieces.load(std::memory_order_acquire) < pieces) return false;
  }
  return true;
}

bool Endpoint::all_have_shares() noexcept {
  await(Awaited::kShares, shares_);
  for (; next_to_check_ < position_.size; ++next_to_check_) {
    if (peer(next_to_check_).shares.load(std::memory_order_acquire) < shares_) return false;
  }
  return true;
}

std::byte* Endpoint::cell(int member, std::uint64_t piece) const noexcept {
  const CellLocation location = cell_of(member, piece, position_.size);
  return peer(location.owner).cells[location.index].data();
}

void Endpoint::drive(const CollectiveCall& call, Task<> task) {
  while (true) {
    task.resume();
    if (task.done()) return;
    if (!task.has_yielded()) wait_for(call, [&] { return task.ready(); });
  }
}

std::string Endpoint::name_of(const CollectiveCall& call) const {
  return fmt::format("{} #{}", to_string(whole(call).kind), number());
}

void Endpoint::describe_call(const CollectiveCall& call) {
  if (own_.described.load(std::memory_order_relaxed) == sequence_) return;
  own_.signature = signature(whole(call), number());
  own_.described.store(sequence_, std::memory_order_release);
  own_.described_number.store(number_ + 1, std::memory_order_release);
}

std::vector<int> Endpoint::missing_members() const {
  std::vector<int> missing;
  for (int member = 0; member < position_.size; ++member) {
    const PriorityBlock& block = peer(member);
    const bool arrived = awaited_ == Awaited::kAnnouncements ? announced(member)
                         : awaited_ == Awaited::kPieces
                             ? block.pieces.load(std::memory_order_acquire) >= awaited_count_
                             : block.shares.load(std::memory_order_acquire) >= awaited_count_;
    if (!arrived) missing.push_back(member);
  }
  return missing;
}

void Endpoint::check_for_failure(const CollectiveCall& call, const Waiting& waiting) {
  if (group_->failed()) fail(group_->failure());
  if (const std::optional<Error> fault = group_->fault()) fail(in_call(call, *fault));
  if (inter_node_ != nullptr) {
    if (const std::optional<Error> error = inter_node_->check_for_failure(whole(call), waiting)) fail(*error);
  }
  describe_call(call);
  notice_difference();
  require_nobody_left(call);
  // Who is late may wait for other nodes, and then it takes more than one's own node to see who is missing.
  if (inter_node_ == nullptr) require_nobody_late(call, waiting);
}

void Endpoint::require_nobody_late(const CollectiveCall& call, const Waiting& waiting) {
  const std::chrono::duration<double> timeout = group_->timeout(whole(call));
  if (timeout.count() <= 0 || waiting.waited() < timeout) return;
  const std::vector<int> missing = missing_members();
  if (missing.empty()) return;
  fail(DeadlineExceeded(
      ErrorOrigin{name_of(call), missing.front(), group_->host_of(missing.front())},
      explain_missing(whole(call), number(), missing, group_->members(), waiting.waited().count())));
}

Error Endpoint::in_call(const CollectiveCall& call, const Error& error) const {
  ErrorOrigin origin = error.origin();
  origin.call = name_of(call);
  return {error.code(), fmt::format("{}: {}", name_of(call), error.what()), std::move(origin)};
}

Error Endpoint::cause_of(const CollectiveCall& call, const Error& error) const {
  if (failure_) return *failure_;
  // Who copies from a process that has just ended learns it before those who watch processes do.
  const Deadline deadline = Deadline::after(kTimeToNotice);
  const bool may_be_gone = error.code() == ErrorCode::kUnavailable && !group_->is_one_process();
  while (may_be_gone && !group_->failed() && !deadline.expired()) {
    if (const std::optional<Error> fault = group_->fault()) return in_call(call, *fault);
    std::this_thread::yield();
  }
  return error.origin().call.empty() ? in_call(call, error) : error;
}

void Endpoint::require_nobody_left(const CollectiveCall& call) {
  std::vector<int> left;
  for (int member = 0; member < position_.size; ++member) {
    if (group_->control_block(member).left.load(std::memory_order_acquire)) left.push_back(member);
  }
  if (left.empty()) return;
  // What they did before they left counts: look for who is missing now that all of it can be seen.
  const std::vector<int> missing = missing_members();
  std::erase_if(
      left, [&](int member) { return std::find(missing.begin(), missing.end(), member) == missing.end(); });
  if (left.empty()) return;
  if (group_->is_watched()) {
    // An error that ends a worker is told by the watch, a moment later and with its reason.
    if (!departure_noticed_) departure_noticed_ = Waiting::Clock::now();
    if (Waiting::Clock::now() - *departure_noticed_ < kTimeForTheReason) return;
  }
  std::vector<std::string> names;
  names.reserve(left.size());
  for (const int member : left) names.push_back(group_->who(group_->rank_of(member)));
  const int first = group_->rank_of(left.front());
  fail(Aborted(
      ErrorOrigin{name_of(call), first, group_->host_of(first)},
      fmt::format("{}: waiting in {} for who left the communicator without this call: {}. An error ended "
                  "their part, or they make fewer calls",
                  name_of(call), describe(whole(call)), fmt::join(names, ", "))));
}

const Error& Endpoint::set_failure(const Error& error) {
  if (failure_) return *failure_;
  const bool first = group_->fail(error);
  failure_ = group_->failure();
  if (first && inter_node_ != nullptr) inter_node_->tell(*failure_);
  return *failure_;
}

void Endpoint::fail(const Error& error) {
  set_failure(error);
  throw_error(failure_->code(), failure_->what(), failure_->origin());
}

}  // namespace cohort::node
