#include "seat.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cohort::node {
namespace {

using namespace std::chrono_literals;

/// How long members that have found a difference wait for each other's exact calls.
constexpr auto kTimeToDescribe = 1s;

/// 32 bits of what members must agree on. Small calls never collide: kind, dtype, operator, root and
/// up to 65,535 elements have bits of their own, and only what exceeds them is mixed in.
std::uint32_t fingerprint(CollectiveKind kind, DType dtype, std::uint8_t op, int root, std::uint64_t elements,
                          std::uint64_t layout) noexcept {
  const auto member = static_cast<std::uint32_t>(root);
  const std::uint64_t rest = elements >> 16 ^ layout ^ static_cast<std::uint64_t>(member >> 5) << 40;
  const auto mixed = static_cast<std::uint32_t>(rest * 0x9e3779b97f4a7c15u >> 48);
  return static_cast<std::uint32_t>(kind) << 28 | static_cast<std::uint32_t>(dtype) << 24 |
         static_cast<std::uint32_t>(op) << 21 | (member & 31u) << 16 |
         ((static_cast<std::uint32_t>(elements) & 0xffffu) ^ mixed);
}

std::uint32_t fingerprint(const CollectiveCall& call) noexcept {
  if (call.counts.empty()) {
    return fingerprint(call.kind, call.dtype, static_cast<std::uint8_t>(call.op), call.root, call.elements,
                       call.layout);
  }
  const CallSignature exact = signature(call, 0);
  return fingerprint(exact.kind, exact.dtype, exact.op, exact.root, exact.elements, exact.layout);
}

}  // namespace

Seat::Seat(std::shared_ptr<NodeGroup> group, int seat)
    : group_(std::move(group)),
      place_{seat, group_->size()},
      own_(group_->seat(seat)),
      pointers_(static_cast<std::size_t>(group_->size())),
      more_pointers_(static_cast<std::size_t>(group_->size())) {}

void Seat::begin_parts(const CollectiveCall& call) noexcept {
  whole_ = &call;
  ++calls_;
}

const CallPlan& Seat::plan(const CollectiveCall& call) {
  const PlanKey key{call.elements, call.layout, call.root, call.kind, call.dtype, call.op};
  if (key == planned_ && call.counts.empty()) return plan_;
  planned_ = call.counts.empty() ? key : PlanKey{};
  plan_ = {fingerprint(call), contributed_bytes(call, place_.size),
           reduces(call.kind) ? reduction_kernel(call.dtype, call.op) : nullptr};
  return plan_;
}

void Seat::open(const CallPlan& plan) {
  if (failure_ || group_->failed()) fail(failure_ ? *failure_ : group_->failure());
  if (whole_ == nullptr) ++calls_;
  ++sequence_;
  word_ = sequence_ << 32 | plan.fingerprint;
  disagreement_ = false;
}

bool Seat::announced(int member) const noexcept {
  const std::uint64_t word = peer(member).lines[sequence_ % 2].word.load(std::memory_order_acquire);
  return word >> 32 == (sequence_ & 0xffffffffu);
}

void Seat::await(Awaited what, std::uint64_t count) noexcept {
  if (awaited_ == what && awaited_count_ == count) return;
  awaited_ = what;
  awaited_count_ = count;
  next_to_check_ = 0;
}

bool Seat::all_announced() noexcept {
  await(Awaited::kAnnouncements, sequence_);
  const std::size_t turn = sequence_ % 2;
  for (; next_to_check_ < place_.size; ++next_to_check_) {
    const std::uint64_t word = peer(next_to_check_).lines[turn].word.load(std::memory_order_acquire);
    if (word == word_) continue;
    if (word >> 32 != word_ >> 32) return false;
    disagreement_ = true;
    return true;
  }
  return true;
}

Steps Seat::collect_signatures(const CollectiveCall& call, Signatures& signatures) {
  describe_call(call);
  const Deadline deadline = Deadline::after(kTimeToDescribe);
  const auto described = [this](int member) {
    return peer(member).described.load(std::memory_order_acquire) == sequence_;
  };
  co_await until([&] {
    for (int member = 0; member < place_.size; ++member) {
      if (!described(member)) return deadline.expired() || group_->failed();
    }
    return true;
  });
  for (int member = 0; member < place_.size; ++member) {
    if (!described(member)) continue;
    signatures.calls.push_back(peer(member).signature);
    signatures.ranks.push_back(group_->rank_of(member));
  }
}

Steps Seat::explain_disagreement(const CollectiveCall& call) {
  Signatures signatures;
  Steps collection = collect_signatures(call, signatures);
  co_await finished(collection);
  int odd = 0;
  const std::optional<std::string> mismatch =
      explain_mismatch(signatures.calls, signatures.ranks, group_->members(), odd);
  fail(InvalidArgument(
      ErrorOrigin{name_of(call), odd, mismatch ? group_->host_of(odd) : ""},
      mismatch.value_or(fmt::format("{}: members disagree, and those who differ did not say what they called",
                                    name_of(call)))));
}

bool Seat::all_have_pieces(std::uint64_t pieces) noexcept {
  await(Awaited::kPieces, pieces);
  for (; next_to_check_ < place_.size; ++next_to_check_) {
    if (peer(next_to_check_).pieces.load(std::memory_order_acquire) < pieces) return false;
  }
  return true;
}

bool Seat::all_have_shares() noexcept {
  await(Awaited::kShares, shares_);
  for (; next_to_check_ < place_.size; ++next_to_check_) {
    if (peer(next_to_check_).shares.load(std::memory_order_acquire) < shares_) return false;
  }
  return true;
}

// With two members the cells of a pair change hands: who reads a cell fetches its lines for writing and
// fills this very cell in its next turn. Each line then crosses between the cores once per call, where
// cells of fixed owners cost two crossings. Nothing else guards a cell: a member writes to it only after
// it has read it itself.
//
// With more members a cell has several readers and stays its owner's. Two slots suffice, since nobody
// reaches call k + 2 before all have read call k; pieces are read one behind the writing, so four do.

std::byte* Seat::slot(int member, std::uint64_t number) const noexcept {
  if (place_.size == 2)
    return peer(static_cast<int>((static_cast<std::uint64_t>(member) + number) & 1)).slots[0].data();
  return peer(member).slots[number & 1].data();
}

std::byte* Seat::cell(int member, std::uint64_t piece) const noexcept {
  const std::uint64_t turn = piece / kCells;
  const int holder =
      place_.size == 2 ? static_cast<int>((static_cast<std::uint64_t>(member) + turn) & 1) : member;
  return peer(holder).cells[piece % kCells].data();
}

void Seat::drive(const CollectiveCall& call, Steps steps) {
  while (true) {
    steps.resume();
    if (steps.done()) return;
    wait_for(call, [&] { return steps.ready(); });
  }
}

std::string Seat::name_of(const CollectiveCall& call) const {
  return fmt::format("{} #{}", to_string(whole(call).kind), number());
}

void Seat::describe_call(const CollectiveCall& call) {
  if (own_.described.load(std::memory_order_relaxed) == sequence_) return;
  own_.signature = signature(whole(call), number());
  own_.described.store(sequence_, std::memory_order_release);
}

std::vector<int> Seat::missing_members() const {
  std::vector<int> missing;
  for (int member = 0; member < place_.size; ++member) {
    const SeatMemory& seat = peer(member);
    const bool arrived = awaited_ == Awaited::kAnnouncements ? announced(member)
                         : awaited_ == Awaited::kPieces
                             ? seat.pieces.load(std::memory_order_acquire) >= awaited_count_
                             : seat.shares.load(std::memory_order_acquire) >= awaited_count_;
    if (!arrived) missing.push_back(member);
  }
  return missing;
}

void Seat::look_around(const CollectiveCall& call, const Waiting& waiting) {
  if (group_->failed()) fail(group_->failure());
  if (const Error* fault = group_->fault()) {
    ErrorOrigin origin = fault->origin();
    origin.call = name_of(call);
    fail({fault->code(), fmt::format("{}: {}", name_of(call), fault->what()), std::move(origin)});
  }
  if (outside_ != nullptr) {
    if (const std::optional<Error> error = outside_->look_around(whole(call), waiting)) fail(*error);
  }
  describe_call(call);
  require_nobody_left(call);
  // Who is late may wait for other nodes, and then it takes more than one's own node to see who is missing.
  if (outside_ == nullptr) require_nobody_late(call, waiting);
}

void Seat::require_nobody_late(const CollectiveCall& call, const Waiting& waiting) {
  if (group_->timeout().count() <= 0 || waiting.waited() < group_->timeout()) return;
  const std::vector<int> missing = missing_members();
  if (missing.empty()) return;
  fail(DeadlineExceeded(
      ErrorOrigin{name_of(call), missing.front(), group_->host_of(missing.front())},
      explain_missing(call, number(), missing, group_->members(), waiting.waited().count())));
}

void Seat::require_nobody_left(const CollectiveCall& call) {
  std::vector<int> left;
  for (const int member : missing_members()) {
    if (peer(member).left.load(std::memory_order_acquire)) left.push_back(member);
  }
  if (left.empty()) return;
  // What they did before they left counts: look again, now that all of it can be seen.
  const std::vector<int> missing = missing_members();
  std::erase_if(
      left, [&](int member) { return std::find(missing.begin(), missing.end(), member) == missing.end(); });
  if (left.empty()) return;
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

const Error& Seat::set_failure(const Error& error) {
  if (failure_) return *failure_;
  const bool first = group_->fail(error);
  failure_ = group_->failure();
  if (first && outside_ != nullptr) outside_->tell(*failure_);
  return *failure_;
}

void Seat::fail(const Error& error) {
  set_failure(error);
  throw_error(failure_->code(), failure_->what(), failure_->origin());
}

}  // namespace cohort::node
