#include "failure_watch.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "endpoint.h"
#include "progress.h"

namespace cohort::node {
namespace {

using namespace std::chrono_literals;

/// How long a member that has left is given for the reason to become known, where workers are watched.
constexpr auto kTimeForTheReason = 200ms;

/// How long members that have found a difference wait for each other's exact calls.
constexpr auto kTimeToDescribe = 500ms;
/// The same for those that are in the call, and need no more than a moment of processor time.
constexpr auto kTimeForThoseHere = 5s;

/// From when on a member's record says what its call is for.
constexpr auto kLongWait = 50ms;

/// How long the end of another process may go unnoticed.
constexpr auto kTimeToNotice = 500ms;

/// Whether a member has said what the call is for that it has described.
bool has_worded(const PriorityBlock& block) noexcept {
  return block.worded.load(std::memory_order_acquire) == block.described.load(std::memory_order_relaxed);
}

}  // namespace

FailureWatch::FailureWatch(NodeGroup& group, int local_rank, Priority priority, OpenCall& open)
    : group_(group),
      open_(open),
      priority_(priority),
      local_rank_(local_rank),
      priority_blocks_(group.priority_blocks(priority).data()),
      own_(*priority_blocks_[local_rank]),
      group_failure_(group.control_block(0).failure.state) {}

void FailureWatch::check(const CollectiveCall& call, const Waiting& waiting) {
  if (group_.failed()) fail(group_.failure());
  if (const std::optional<Error> fault = group_.fault()) fail(in_call(call, *fault));
  if (inter_node_ != nullptr) {
    if (const std::optional<Error> error = inter_node_->check_for_failure(open_.as_called(call), waiting))
      fail(*error);
  }
  answer_questions();
  describe_call(call);
  if (waiting.waited() >= kLongWait) record_purpose(call);
  notice_difference();
  require_nobody_left(call);
  require_nobody_outside(call);
  // A late member may wait for other nodes; then this node alone cannot tell which members are missing.
  if (inter_node_ == nullptr) require_nobody_late(call, waiting);
}

void FailureWatch::check_group() {
  if (group_.failed()) fail(group_.failure());
  if (const std::optional<Error> fault = group_.fault()) fail(*fault);
  answer_questions();
}

void FailureWatch::answer_questions() {
  if (own_communicators_ != nullptr) own_communicators_->answer_questions();
}

const PriorityBlock& FailureWatch::other_priority(int member) const noexcept {
  const Priority other = priority_ == Priority::kNormal ? Priority::kUrgent : Priority::kNormal;
  return *group_.priority_blocks(other)[static_cast<std::size_t>(member)];
}

std::uint64_t FailureWatch::announced_word(int member) const noexcept {
  return priority_block(member).lines[open_.rotation.line()].word.load(std::memory_order_acquire);
}

void FailureWatch::describe_call(const CollectiveCall& call) {
  if (own_.described.load(std::memory_order_relaxed) == open_.sequence) return;
  own_.signature = signature(open_.as_called(call), open_.number);
  own_.described.store(open_.sequence, std::memory_order_release);
  own_.described_number.store(open_.number + 1, std::memory_order_release);
}

/// Words are made of memory, so only a wait that is long already pays for them.
void FailureWatch::record_purpose(const CollectiveCall& call) {
  const CollectiveCall& called = open_.as_called(call);
  if (called.purpose == nullptr || recorded_purpose_of_ == open_.number + 1) return;
  recorded_purpose_of_ = open_.number + 1;
  open_.recorder->explain(open_.record, words_of(called).purpose.action);
}

void FailureWatch::put_in_words(const CollectiveCall& call) {
  const std::string line = to_line(words_of(open_.as_called(call)));
  const std::size_t length = std::min(line.size(), own_.words.size() - 1);
  std::copy_n(line.begin(), length, own_.words.begin());
  own_.words[length] = '\0';
  own_.worded.store(open_.sequence, std::memory_order_release);
}

/// The block in which a member has described its call; null if it has not.
const PriorityBlock* FailureWatch::find_description(int member) const noexcept {
  const PriorityBlock& same = priority_block(member);
  if (same.described.load(std::memory_order_acquire) == open_.sequence) return &same;
  const PriorityBlock& other = other_priority(member);
  return other.explained_number.load(std::memory_order_acquire) == open_.number + 1 ? &other : nullptr;
}

/// Whether a member has announced the open call and a later one: it will say no more of this one.
bool FailureWatch::has_gone_on(int member) const {
  const auto is_on = [&](std::size_t line) {
    return has_announced(priority_block(member), line, open_.sequence + 1);
  };
  return announced_word(member) >> 32 == open_.word >> 32 &&
         std::ranges::any_of(open_.rotation.next_in_any_case(), is_on);
}

/// What a member that may be in another call by now has called as its collective of this number; nothing if
/// it has not come to it, or long ago.
std::optional<CallSignature> FailureWatch::find_record(int member, std::uint64_t number) const {
  for (const CallEntry& entry : group_.control_block(member).record.entries) {
    EntryFields fields;
    if (read_entry(entry, fields) != EntryState::kWhole) continue;
    const std::optional<RecordedCall> recorded = unpack(fields.call);
    if (!recorded || is_message(recorded->kind) || recorded->number != number) continue;
    CollectiveCall call;
    call.kind = recorded->kind;
    call.dtype = recorded->dtype;
    call.op = recorded->op;
    call.root = recorded->root;
    call.elements = recorded->elements;
    return signature(call, number);
  }
  return std::nullopt;
}

// Announcements are waited for one member after the other, or along a tree. Here a member that differs is
// found although an earlier one is still missing, and wherever it is in the tree.
void FailureWatch::notice_difference() noexcept {
  if (open_.awaited != Awaited::kAnnouncements) return;
  const auto is_of_this_call = [this](const std::atomic<std::uint64_t>& number) {
    return number.load(std::memory_order_acquire) == open_.number + 1;
  };
  for (int member = open_.next_to_check; member < group_.size(); ++member) {
    const std::uint64_t word = announced_word(member);
    const bool differs = word >> 32 == open_.word >> 32 && word != open_.word;
    if (!differs && !is_of_this_call(other_priority(member).described_number) &&
        !is_of_this_call(priority_block(member).explained_number))
      continue;
    open_.disagreement = true;
    open_.next_to_check = group_.size();
  }
}

Task<std::vector<MemberCall>> FailureWatch::collect_calls(const CollectiveCall& call) {
  describe_call(call);
  record_purpose(call);
  put_in_words(call);
  own_.explained_number.store(open_.number + 1, std::memory_order_release);
  const Deadline end = Deadline::after(kTimeToDescribe);
  const Deadline end_for_those_here = Deadline::after(kTimeForThoseHere);
  co_await until([&] {
    if (group_.failed()) return true;
    for (int member = 0; member < group_.size(); ++member) {
      if (has_gone_on(member)) continue;
      const PriorityBlock* const description = find_description(member);
      const bool has_said = description != nullptr && has_worded(*description);
      const bool is_here = announced_word(member) >> 32 == open_.word >> 32;
      if (!has_said && !(is_here ? end_for_those_here : end).expired()) return false;
    }
    return true;
  });
  std::vector<MemberCall> calls;
  for (int member = 0; member < group_.size(); ++member) {
    const PriorityBlock* const description = find_description(member);
    if (description == nullptr) {
      if (const std::optional<CallSignature> recorded = find_record(member, open_.number))
        calls.push_back({group_.rank_of(member), *recorded, CallWords()});
      continue;
    }
    calls.push_back({group_.rank_of(member), description->signature,
                     has_worded(*description) ? from_line(description->words.data()) : CallWords()});
  }
  co_return calls;
}

Task<> FailureWatch::explain_disagreement(const CollectiveCall& call) {
  const std::vector<MemberCall> calls = co_await collect_calls(call);
  int odd = 0;
  const std::optional<std::string> mismatch = explain_mismatch(calls, group_.members(), odd);
  if (!mismatch) {
    if (const std::optional<Error> error = explain_calls_outside(call)) fail(*error);
    if (const std::optional<Error> error = explain_earlier_calls()) fail(*error);
  }
  fail(InvalidArgument(
      ErrorOrigin{name_of(call), odd, mismatch ? group_.host_of(odd) : ""},
      mismatch.value_or(fmt::format(
          "{}: members disagree, and those that differ did not say what they called", name_of(call)))));
}

/// The first call that members differ in of which nobody had to look at the announcements of all. Nothing if
/// it was too long ago.
std::optional<Error> FailureWatch::explain_earlier_calls() const {
  const std::uint64_t kept = std::min<std::uint64_t>(open_.number, kRecordedCalls);
  for (std::uint64_t number = open_.number - kept; number < open_.number; ++number) {
    std::vector<MemberCall> calls;
    for (int member = 0; member < group_.size(); ++member) {
      const std::optional<CallSignature> recorded = find_record(member, number);
      if (recorded && has_root(recorded->kind))
        calls.push_back({group_.rank_of(member), *recorded, CallWords()});
    }
    if (calls.empty()) continue;
    int odd = 0;
    if (const std::optional<std::string> mismatch = explain_mismatch(calls, group_.members(), odd))
      return InvalidArgument(
          ErrorOrigin{fmt::format("{} #{}", to_string(calls.front().signature.kind), number), odd,
                      group_.host_of(odd)},
          *mismatch);
  }
  return std::nullopt;
}

// ---- members that are missing

bool FailureWatch::has_done_what_is_awaited(int member) const noexcept {
  switch (open_.awaited) {
    case Awaited::kAnnouncements: return announced_word(member) >> 32 == open_.word >> 32;
    case Awaited::kRoot:
      return member != static_cast<int>(open_.awaited_count) ||
             announced_word(member) >> 32 == open_.word >> 32;
    case Awaited::kLine:
      return has_announced(priority_block(member), open_.awaited_line, open_.awaited_count);
    case Awaited::kPieces:
    case Awaited::kTurn:
      return priority_block(member).pieces.load(std::memory_order_acquire) >= open_.awaited_count;
    case Awaited::kDone:
      return priority_block(member).calls_done.load(std::memory_order_acquire) >= open_.awaited_count;
  }
  return true;
}

std::vector<int> FailureWatch::missing_members() const {
  std::vector<int> missing;
  for (int member = 0; member < group_.size(); ++member) {
    if (!has_done_what_is_awaited(member)) missing.push_back(member);
  }
  // Those behind the first one wait for it, too.
  if (open_.awaited == Awaited::kTurn && !missing.empty()) return {missing.front()};
  return missing;
}

std::vector<int> FailureWatch::members_that_pass_nothing_on() {
  constexpr std::chrono::milliseconds kNap{100};
  std::vector<int> idle;
  if (open_.awaited == Awaited::kAnnouncements && !group_.tree().empty())
    idle = LevelAnnouncements::find_idle(group_.tree(), priority_blocks_, open_);
  if (idle.empty()) return {};
  const auto now = Waiting::Clock::now();
  if (!idle_ || idle_->number != open_.number) idle_ = {open_.number, now};
  if (now - idle_->since < kNap) return {};
  return idle;
}

void FailureWatch::require_nobody_late(const CollectiveCall& call, const Waiting& waiting) {
  const std::chrono::duration<double> timeout = group_.timeout(open_.as_called(call));
  if (timeout.count() <= 0 || waiting.waited() < timeout) return;
  std::vector<int> missing = missing_members();
  if (missing.empty()) missing = members_that_pass_nothing_on();
  if (missing.empty()) return;
  fail(DeadlineExceeded(ErrorOrigin{name_of(call), missing.front(), group_.host_of(missing.front())},
                        explain_missing(open_.as_called(call), open_.number, {missing}, group_.members(),
                                        waiting.waited().count())));
}

void FailureWatch::require_nobody_left(const CollectiveCall& call) {
  std::vector<int> left;
  for (int member = 0; member < group_.size(); ++member) {
    if (group_.control_block(member).left.load(std::memory_order_acquire)) left.push_back(member);
  }
  if (left.empty()) return;
  // What they did before they left counts, and all of it can be seen now.
  std::erase_if(left, [&](int member) { return has_done_what_is_awaited(member); });
  if (left.empty()) return;
  if (group_.reports_lost_workers()) {
    // Where an error ends a worker, the watch of workers reports it a moment later, with its reason.
    if (!departure_noticed_) departure_noticed_ = Waiting::Clock::now();
    if (Waiting::Clock::now() - *departure_noticed_ < kTimeForTheReason) return;
  }
  for (int& member : left) member = group_.rank_of(member);
  const int first = left.front();
  fail(Aborted(
      ErrorOrigin{name_of(call), first, group_.host_of(first)},
      fmt::format(
          "{}: waiting in {}, for members that left the communicator without making this call: {}. An error "
          "ended their part, or they make fewer calls",
          name_of(call), describe(open_.as_called(call)),
          list_members(open_.as_called(call), left, group_.members()))));
}

// ---- calls that something else carries out

std::uint64_t FailureWatch::calls_outside(int member) const noexcept {
  return group_.control_block(member).outside.word.load(std::memory_order_acquire);
}

/// A member that had called no more collectives here, but has called more outside, has done so in the place
/// of the open one, or before; it may be there for ever, or have gone on. As seen twice: it may take it back.
void FailureWatch::require_nobody_outside(const CollectiveCall& call) {
  const auto difference = [](std::uint64_t of, std::uint64_t to) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(of) - static_cast<std::uint32_t>(to));
  };
  const std::uint64_t own = calls_outside(local_rank_);
  for (int member = 0; member < group_.size(); ++member) {
    const std::uint64_t word = calls_outside(member);
    if (difference(word >> 32, own >> 32) <= 0 || difference(word, open_.number) > 0) continue;
    const Outside noticed{open_.number, word};
    if (std::exchange(noticed_outside_, noticed) != noticed) return;
    if (const std::optional<Error> error = explain_calls_outside(call)) fail(*error);
  }
}

/// Nothing where all have made as many.
std::optional<Error> FailureWatch::explain_calls_outside(const CollectiveCall& call) const {
  const auto count_of = [this](int member) {
    return static_cast<std::uint32_t>(calls_outside(member) >> 32);
  };
  const std::uint32_t own = count_of(local_rank_);
  std::vector<int> more;
  std::vector<int> fewer;
  for (int member = 0; member < group_.size(); ++member) {
    const auto difference = static_cast<std::int32_t>(count_of(member) - own);
    if (difference > 0) more.push_back(member);
    if (difference < 0) fewer.push_back(member);
  }
  if (more.empty() && fewer.empty()) return std::nullopt;
  if (more.empty()) {
    more = {local_rank_};
  } else {
    fewer = {local_rank_};
  }
  std::string name;
  for (const std::atomic<char>& letter : group_.control_block(more.front()).outside.latest) {
    const char next = letter.load(std::memory_order_relaxed);
    if (next == '\0') break;
    name += next;
  }
  const CollectiveCall& called = open_.as_called(call);
  const auto list = [&](std::vector<int>& members) {
    for (int& member : members) member = group_.rank_of(member);
    return list_members(called, members, group_.members());
  };
  const int first = group_.rank_of(more.front());
  return InvalidArgument(
      ErrorOrigin{name_of(call), first, group_.host_of(first)},
      fmt::format(
          "{}: members disagree: {} called {}, which is not carried out here; {} did not, and is in {}. All "
          "members must make the same calls in the same order",
          name_of(call), list(more), name, list(fewer), describe(called)));
}

// ---- errors

std::string FailureWatch::name_of(const CollectiveCall& call) const {
  return fmt::format("{} #{}", to_string(open_.as_called(call).kind), open_.number);
}

Error FailureWatch::in_call(const CollectiveCall& call, const Error& error) const {
  ErrorOrigin origin = error.origin();
  origin.call = name_of(call);
  return {error.code(), fmt::format("{}: {}", name_of(call), error.what()), std::move(origin)};
}

Error FailureWatch::cause_of(const CollectiveCall& call, const Error& error) const {
  if (failure_) return *failure_;
  // A member that copies from a process which has just ended learns it before the watch of processes does.
  const Deadline deadline = Deadline::after(kTimeToNotice);
  const bool may_be_gone = error.code() == ErrorCode::kUnavailable && !group_.is_one_process();
  while (may_be_gone && !group_.failed() && !deadline.expired()) {
    if (const std::optional<Error> fault = group_.fault()) return in_call(call, *fault);
    std::this_thread::yield();
  }
  return error.origin().call.empty() ? in_call(call, error) : error;
}

const Error& FailureWatch::set_failure(const Error& error) {
  if (failure_) return *failure_;
  if (group_.fail(error)) {
    if (inter_node_ != nullptr) inter_node_->tell(group_.first_error());
    group_.report(error);
  }
  failure_ = group_.failure();
  return *failure_;
}

void FailureWatch::fail(const Error& error) { throw_error(set_failure(error)); }

void FailureWatch::fail_again() { fail(failure_ ? *failure_ : group_.failure()); }

}  // namespace cohort::node
