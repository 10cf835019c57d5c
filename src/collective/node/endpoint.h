// One member's side of the protocol, for calls of one priority: it announces calls, waits for the others'
// announcements, counts what has been done within a call, and knows the cells that data goes through.
//
// A collective goes: `open` with the plan of the call, the payload, `announce`, wait until `all_announced`,
// then whatever its algorithm does. What a call means is planned by the CallPlanner. A wait that may never
// end is the FailureWatch's: it turns the reason into the error of the whole group, from what the OpenCall
// says is missing.
//
// One thread at a time drives an endpoint.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/reduction.h>
#include <cohort/collective/task.h>

#include "call_plan.h"
#include "collective/choice/choice_log.h"
#include "collective/choice/tuning_figures.h"
#include "collective/kernels/prefetch.h"
#include "collective/record/call_record.h"
#include "control_block.h"
#include "direct.h"
#include "failure_watch.h"
#include "levels.h"
#include "line_counter.h"
#include "node_group.h"
#include "waiting.h"

namespace cohort::node {

/// What every other member must do before this one goes on.
enum class Awaited {
  kAnnouncements,  ///< of the call
  kRoot,           ///< its announcement alone
  kLine,           ///< of this member, which is free when all have come far enough
  kPieces,         ///< in the cells
  kTurn,           ///< pieces, which each member passes on after the one before it
  kDone,           ///< of direct and registered collectives, of shares, and of what one reduces for all
};

/// What a member's announcement brings to the others beside its word.
struct Contents {
  std::size_t payload_bytes = 0;
  /// Where there is one, all need no more than the payloads reduced by it.
  ReductionKernel kernel = nullptr;
  std::size_t elements = 0;  ///< of the payload, for the kernel
  /// Where it is a member, all need no more than its payload.
  int source = -1;

  /// Whether one payload goes to all members: a result, or that of the source.
  [[nodiscard]] bool goes_as_one() const noexcept { return kernel != nullptr || source >= 0; }
};

/// The collective that a member is in: which one it is, what the member announces about it, and what it waits
/// for.
struct OpenCall {
  std::uint64_t number = 0;  ///< of the program's collective, among those of all priorities; parts share it
  /// The collective that this is a part of; null: it is whole itself. The whole in turn may be a barrier by
  /// which members agree on another call, the one that it `stands_for`.
  const CollectiveCall* whole = nullptr;
  std::uint64_t sequence = 0;  ///< announcements so far: a collective in parts has several
  std::uint64_t word = 0;      ///< what is announced: {sequence, fingerprint}, 32 bits each
  std::uint32_t before = 0;  ///< in all fingerprints: of calls before that some members may not have compared
  LineRotation rotation;     ///< where announcements are
  bool payload_has_details = false;
  Contents contents = {};
  bool disagreement = false;  ///< some member has called something else

  CallRecorder* recorder = nullptr;  ///< set once
  CallRecorder::Entry record;        ///< of the program's collective

  int next_to_check = 0;  ///< members before it have done what is awaited
  Awaited awaited = Awaited::kAnnouncements;
  std::uint64_t awaited_count = 0;
  std::size_t awaited_line = 0;  ///< where that is a line that must be free: on which others say so

  /// What the program has called: `call`, or what it is a part of, or stands for.
  [[nodiscard]] const CollectiveCall& as_called(const CollectiveCall& call) const noexcept {
    return (whole == nullptr ? call : *whole).as_called();
  }
};

class Endpoint {
 public:
  Endpoint(std::shared_ptr<NodeGroup> group, int local_rank, Priority priority);

  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] NodeGroup& group() const noexcept { return *group_; }
  [[nodiscard]] const Position& position() const noexcept { return position_; }

  [[nodiscard]] CallPlanner& planner() noexcept { return planner_; }
  [[nodiscard]] FailureWatch& failure_watch() noexcept { return failure_watch_; }
  [[nodiscard]] bool reaches_other_nodes() const noexcept { return failure_watch_.reaches_other_nodes(); }

  /// Set once: the members of the node for algorithms that programs have registered.
  void set_peers(Peers& peers) noexcept { peers_ = &peers; }
  [[nodiscard]] Peers& peers() const noexcept { return *peers_; }

  // ---- one collective after the other

  /// The number of the next collective, among those of all priorities.
  void set_number(std::uint64_t number) noexcept { open_.number = number; }

  /// Collectives opened between here and `end_subcalls` are subcalls of `call`; the first one announces
  /// `call` itself.
  void begin_subcalls(const CollectiveCall& call) noexcept { open_.whole = &call; }
  void end_subcalls() noexcept { open_.whole = nullptr; }
  [[nodiscard]] bool in_subcalls() const noexcept { return open_.whole != nullptr; }
  /// The kind of `call`, or of the larger call that it is a part of.
  [[nodiscard]] CollectiveKind kind_of_whole(const CollectiveCall& call) const noexcept {
    return as_called(call).kind;
  }
  /// What the program has called: `call`, or what it is a part of, or stands for.
  [[nodiscard]] const CollectiveCall& as_called(const CollectiveCall& call) const noexcept {
    return open_.as_called(call);
  }

  /// So many calls of all members came before the next one which something else has carried out.
  void set_calls_outside(std::uint32_t count) noexcept {
    open_.before += (count - outside_) * 0x9e3779b1U;
    outside_ = count;
  }

  // ---- what the member's record says of it

  /// Set once.
  void set_recorder(CallRecorder& recorder) noexcept { open_.recorder = &recorder; }
  /// The member has come to `call`. For small calls after the announcement, which it would delay.
  void record_arrival(const CollectiveCall& call) noexcept {
    open_.record = open_.recorder->begin(as_called(call), open_.number);
  }
  /// The same of a call that has been planned.
  void record_arrival(const CollectiveCall& call, const CallPlan& plan) noexcept {
    if (open_.whole != nullptr || call.stands_for != nullptr) [[unlikely]]
      return record_arrival(call);
    open_.record = open_.recorder->begin_collective(plan.packed, open_.number);
  }
  /// Its arrival has been recorded already.
  void set_record(const CallRecorder::Entry& record) noexcept { open_.record = record; }
  /// All members have announced it.
  void record_start() const noexcept { open_.recorder->start(open_.record); }
  void record_end() const noexcept { open_.recorder->end(open_.record); }
  void record_end_at_once() const noexcept { open_.recorder->end_at_once(open_.record); }
  /// It has waited for nobody.
  void record_end_at_arrival() const noexcept { open_.recorder->end_at_arrival(open_.record); }

  /// Opens the next collective. @throws the group's failure.
  void open(const CallPlan& plan) {
    failure_watch_.require_usable();
    ++open_.sequence;
    open_.rotation.open(plan.eager);
    open_.word = open_.sequence << 32 | (plan.fingerprint ^ open_.before);
    open_.disagreement = false;
    open_.payload_has_details = plan.payload_has_details;
    if (levels_) open_.contents = {.payload_bytes = plan.payload_has_details ? sizeof(CallDetails) : 0};
    if (plan.payload_has_details) write_details(plan.details);
  }

  /// Of the open collective, before `announce`: what its payload has, if that is more than the call's
  /// details.
  void set_contents(const Contents& contents) noexcept { open_.contents = contents; }

  /// How many collectives of this member, of all priorities, were called before the open one.
  [[nodiscard]] std::uint64_t number() const noexcept { return open_.number; }

  /// This member's payload of the open collective, to be written before `announce`. It begins with the call's
  /// details where the data is elsewhere.
  [[nodiscard]] std::byte* own_payload() const noexcept {
    return own_.lines[open_.rotation.line()].payload.data();
  }
  /// After `all_announced`: any member's, unless there are levels and the contents go as one.
  [[nodiscard]] const std::byte* payload_of(int member) const noexcept {
    return levels_ ? levels_->payload_of(member, open_)
                   : priority_block(member).lines[open_.rotation.line()].payload.data();
  }

  /// Announces the open collective to the others; this member's payload is complete.
  void announce() noexcept {
    Line& line = own_.lines[open_.rotation.line()];
    if (!is_plain_ && is_counted()) [[unlikely]]
      counter_->published(position_.rank, &line);
    line.word.store(open_.word, std::memory_order_release);
    own_.bell.ring();
  }

  /// Members look at each other's lines, and nobody counts these: what is fast has to know no more.
  [[nodiscard]] bool is_plain() const noexcept { return is_plain_; }
  /// Whether rooted calls of few bytes are eager.
  [[nodiscard]] bool is_eager() const noexcept { return is_plain_ && group_->is_eager(); }
  /// Whether announcements go along a tree: where the node has many members.
  [[nodiscard]] bool has_levels() const noexcept { return levels_.has_value(); }
  /// After `all_announced`, where there are levels and the contents go as one: what reaches all members.
  [[nodiscard]] const std::byte* result() const noexcept { return levels_->result(open_); }

  /// True when all members have announced the same call, or when one differs.
  [[nodiscard]] bool all_announced() noexcept {
    await(Awaited::kAnnouncements, open_.sequence);
    if (levels_) [[unlikely]]
      return levels_->advance(open_);
    const std::size_t line = open_.rotation.line();
    const std::uint64_t own_word = open_.word;
    const int members = position_.size;
    for (int member = open_.next_to_check; member < members; ++member) {
      const std::uint64_t word = priority_block(member).lines[line].word.load(std::memory_order_acquire);
      if (word == own_word) continue;
      open_.next_to_check = member;
      open_.disagreement = word >> 32 == own_word >> 32;
      return open_.disagreement;
    }
    open_.next_to_check = members;
    all_have_announced_ = open_.sequence;
    if (!is_plain_) [[unlikely]]
      count_reads_of_lines();
    return true;
  }

  // ---- eager calls: where there are no levels, and nobody counts

  /// Mixes the open one into the fingerprints of later calls, since perhaps nobody looks at the announcement
  /// of who only sends.
  void remember(const CallPlan& plan) noexcept {
    const std::uint32_t mixed = (plan.fingerprint ^ static_cast<std::uint32_t>(open_.sequence)) * 0x85ebca6bU;
    open_.before += mixed ^ mixed >> 15;
  }

  /// True when the root has announced the same call, or another one in its place.
  [[nodiscard]] bool root_announced(int root) noexcept {
    await(Awaited::kRoot, static_cast<std::uint64_t>(root));
    open_.next_to_check = root;
    const Line& line = priority_block(root).lines[open_.rotation.line()];
    const std::uint64_t word = line.word.load(std::memory_order_acquire);
    open_.disagreement = word != open_.word && word >> 32 == open_.word >> 32;
    if (word != open_.word) return open_.disagreement;
    if (position_.size == 2) all_have_announced_ = open_.sequence;
    return true;
  }

  /// What `member` contributes, where it does not fit the line.
  [[nodiscard]] std::byte* eager_payload(int member) const noexcept {
    return priority_block(member).eager_payloads[open_.rotation.line()].data();
  }

  /// Whether the next line is known to be free: all have announced a call after the one that it was for.
  [[nodiscard]] bool next_line_is_free() const noexcept {
    return open_.sequence + 1 - all_have_announced_ < kEagerLines;
  }

  // In a row of eager calls the way of a cache line takes longer than a call, so lines are fetched some calls
  // ahead: those that this member is to write, and those that others have written already. A line that is
  // fetched before is taken away from who is about to write it, and its way is made twice. So in every eighth
  // call a member that is behind asks for the line of the sixteenth call from there, and four calls later
  // looks at it.
  void prepare_eager_lines(std::size_t bytes) const noexcept {
    if (open_.sequence + kPreparedCalls - all_have_announced_ >= kEagerLines) return;
    const std::size_t later = open_.rotation.among_eager(kPreparedCalls);
    prefetch_to_write(&own_.lines[later]);
    if (bytes > kPayloadBytes) prefetch_to_write(own_.eager_payloads[later].data());
  }
  /// `each(look)` calls `look` for every member whose announcement the open call waits for.
  template <class Each>
  void expect_eager_lines(const Each& each, std::size_t bytes) noexcept {
    const std::uint64_t turn = open_.sequence % 8;
    if (turn == 0) {
      const std::size_t sixteenth = open_.rotation.among_eager(16);
      each([&](int member) { prefetch_to_read(&priority_block(member).lines[sixteenth]); });
    } else if (turn == 4) {
      const std::uint64_t call = open_.sequence + 12;
      const std::size_t line = open_.rotation.among_eager(12);
      bool all_have = true;
      each([&](int member) { all_have = has_announced(priority_block(member), line, call) && all_have; });
      if (all_have) expected_ = call;
    }
    if (open_.sequence + kExpectedCalls > expected_) return;
    const std::size_t later = open_.rotation.among_eager(kExpectedCalls);
    each([&](int member) {
      prefetch_to_read(&priority_block(member).lines[later]);
      if (bytes > kPayloadBytes) prefetch_to_read(priority_block(member).eager_payloads[later].data());
    });
  }

  /// After looking at the others' words: whether half of the lines are, so that the next calls need not look.
  [[nodiscard]] bool half_of_lines_are_free() noexcept;

  /// After `all_announced`: whether some member has called something else.
  [[nodiscard]] bool disagreement() const noexcept {
    return open_.disagreement || (open_.payload_has_details && !levels_ && details_differ());
  }

  /// Fetches the line of the next call for writing, while the caller does something else.
  void prepare_next_line() noexcept { prefetch_to_write(&own_.lines[open_.rotation.next()]); }

  // ---- within a collective: what has been done since the beginning, by count

  void raise_pieces(std::uint64_t pieces) noexcept {
    if (counter_ != nullptr) counter_->published(position_.rank, &own_.pieces, pieces);
    own_.pieces.store(pieces, std::memory_order_release);
    own_.bell.ring();
  }
  [[nodiscard]] bool all_have_pieces(std::uint64_t pieces) noexcept;
  /// Where pieces go from member to member, in the order of their ranks.
  [[nodiscard]] bool has_passed(int member, std::uint64_t pieces) noexcept;
  /// All have passed on the last one: later waits are not for a turn.
  void end_turns() noexcept { await(Awaited::kAnnouncements, open_.sequence); }
  /// This member has done its part of the open collective, or come to a point in it where all meet.
  void raise_done() noexcept;
  [[nodiscard]] bool all_are_done() noexcept;
  /// The same of one member, where there are no levels.
  [[nodiscard]] bool is_done(int member) noexcept;
  /// After `all_announced`, once in a call: who reduces it for all, which is the first member that asks.
  [[nodiscard]] int choose_reducer() noexcept;
  /// From here on a check counts every member as missing, this one too, that is not done.
  void await_next_done() noexcept { await(Awaited::kDone, calls_done_ + 1); }

  /// Blocks that this member has finished within a part of the open collective, for those that go on with
  /// them.
  void raise_blocks_done(std::uint32_t count) noexcept;
  [[nodiscard]] bool has_blocks_done(int member, std::uint32_t count) const noexcept;

  /// The cells of a slot (a call of one piece) and of a piece of a longer call, by number.
  [[nodiscard]] std::byte* slot(int member, std::uint64_t number) const noexcept {
    const BufferLocation location = slot_of(member, number, position_.size);
    return priority_block(location.owner).slots[location.index].data();
  }
  [[nodiscard]] std::byte* cell(int member, std::uint64_t piece) const noexcept;
  /// Of a piece that all members work on, by its number within the call: in all members' blocks in turns.
  [[nodiscard]] std::byte* shared_cell(std::size_t piece) const noexcept {
    const auto members = static_cast<std::size_t>(position_.size);
    return priority_block(static_cast<int>(piece % members)).cells[piece / members].data();
  }
  /// Of a step of a long call that goes along the tree: two cells in one, in turns.
  [[nodiscard]] std::byte* step_cell(int member, std::size_t step) const noexcept {
    return priority_block(member).cells[step % 2 * 2].data();
  }
  /// Whether this member may fill its cells again before it knows that all have come to the next call: not
  /// after a call in steps, which ends with reading them.
  [[nodiscard]] bool cells_are_free() const noexcept { return cells_are_free_; }
  void set_cells_are_free() noexcept { cells_are_free_ = true; }
  void set_cells_are_read() noexcept { cells_are_free_ = false; }
  [[nodiscard]] std::uint64_t next_slot() noexcept { return slots_++; }
  [[nodiscard]] std::uint64_t next_pieces(std::uint64_t count) noexcept {
    return std::exchange(pieces_, pieces_ + count);
  }

  [[nodiscard]] bool is_counted() const noexcept { return counter_ != nullptr; }
  /// Of data that this member takes from another's memory, or brings there: for the counter of lines.
  void note_moved(int member, std::size_t bytes) const noexcept {
    if (counter_ != nullptr) counter_->moved(position_.rank, member, bytes);
  }

  /// Space for a pointer per member.
  [[nodiscard]] std::span<const std::byte*> pointers() noexcept { return pointers_; }
  [[nodiscard]] std::span<std::byte*> output_pointers() noexcept { return output_pointers_; }

  // ---- waiting

  template <class Condition>
  void wait_for(const CollectiveCall& call, Condition condition) {
    if (position_.size == 1 && condition()) return;
    // Most waits end within these polls, and need no clock and no back-off.
    constexpr int kPollsAtOnce = 256;
    for (int poll = group_->oversubscribed() ? kPollsAtOnce : 0; poll < kPollsAtOnce; ++poll) {
      // Alone on its node, a member waits for the network, and not for a cache line that a poll takes away.
      if (position_.size > 1) pause_for_a_crossing();
      if (condition()) return;
    }
    wait_longer(call, condition);
  }

  /// For the open collective's list of the members' buffers.
  [[nodiscard]] std::vector<MemberBuffers>& member_buffers() noexcept { return member_buffers_; }

  /// Runs an algorithm to its end.
  void drive(const CollectiveCall& call, Task<> task);

  // ---- what is reported and what is known

  /// The protocol or algorithm of the open collective, and why it was chosen.
  void set_algorithm(std::string_view name) noexcept { algorithm_ = name; }
  void set_reason(ChoiceReason reason) noexcept { reason_ = reason; }
  [[nodiscard]] std::string_view algorithm() const noexcept { return algorithm_; }
  [[nodiscard]] ChoiceReason reason() const noexcept { return reason_; }
  /// Of a call that has ended, for the numbers of the run; small ones leave no choice.
  void log_choice(const CollectiveCall& call) const {
    ChoiceLog& log = ChoiceLog::of_this_process();
    if (log.is_on() && reason_ != ChoiceReason::kSize) log.note(as_called(call), algorithm_, reason_);
  }

  /// The table by which the protocol of a large call is chosen, the same on all members; unset before the
  /// first such call.
  void set_tuning(const TuningTable& tuning) { tuning_ = tuning; }
  [[nodiscard]] const std::optional<TuningTable>& tuning() const noexcept { return tuning_; }

 private:
  static constexpr int kPreparedCalls = 3;
  static constexpr int kExpectedCalls = 4;

  /// A turn may be as long as all other members' work, and who is waited for rings. This is for a missed
  /// ring.
  static constexpr std::chrono::milliseconds kNapUntilTurn{10};

  /// What follows those polls: not inline, as most calls never come here.
  template <class Condition>
  [[gnu::noinline]] void wait_longer(const CollectiveCall& call, Condition condition) {
    Waiting waiting(group_->oversubscribed(), group_->while_waiting());
    do {
      if (waiting.is_time_to_check()) failure_watch_.check(call, waiting);
      if (!waiting.naps()) {
        waiting.give_way();
        continue;
      }
      // Sleep at the bell of the first member that lags. If `condition` waits for something else, nobody
      // rings, and the sleep just times out.
      const Bell::Sleeper sleeper(priority_block(awaited_member()).bell);
      if (condition()) return;
      sleeper.sleep(open_.awaited == Awaited::kTurn ? kNapUntilTurn : waiting.nap());
    } while (!condition());
  }

  [[nodiscard]] PriorityBlock& priority_block(int member) const noexcept { return *priority_blocks_[member]; }
  void await(Awaited what, std::uint64_t count) noexcept {
    if (open_.awaited == what && open_.awaited_count == count) return;
    open_.awaited = what;
    open_.awaited_count = count;
    open_.next_to_check = 0;
  }
  void write_details(CallDetails details) const noexcept {
    details.number = open_.number;
    std::memcpy(own_payload(), &details, sizeof details);
  }
  [[nodiscard]] bool details_differ() const noexcept;
  [[nodiscard]] int awaited_member() const noexcept {
    if (levels_ && open_.awaited == Awaited::kAnnouncements) return levels_->awaited_member();
    return std::min(open_.next_to_check, position_.size - 1);
  }
  void count_reads_of_lines() const;
  void count_reads_of(std::atomic<std::uint64_t> PriorityBlock::*flag, std::uint64_t count) const;
  /// Waits for this one member, which raises the flag.
  [[nodiscard]] bool has_raised(int member, std::atomic<std::uint64_t> PriorityBlock::*flag, Awaited what,
                                std::uint64_t count) noexcept;

  std::shared_ptr<NodeGroup> group_;
  Position position_;
  PriorityBlock* const* priority_blocks_;  ///< the group's for this priority, by local rank
  PriorityBlock& own_;
  LineCounter* counter_;  ///< the group's; null: nobody counts
  OpenCall open_;
  std::optional<LevelAnnouncements> levels_;
  bool is_plain_;
  CallPlanner planner_;
  FailureWatch failure_watch_;
  Peers* peers_ = nullptr;

  std::uint32_t outside_ = 0;  ///< calls that are in `open_.before`
  std::uint64_t slots_ = 0;
  std::uint64_t pieces_ = 0;
  std::uint64_t calls_done_ = 0;
  bool cells_are_free_ = true;
  std::uint64_t all_have_announced_ = 0;  ///< as this member knows; counted as `open_.sequence`
  std::uint64_t expected_ =
      0;  ///< up to here those that are ahead have announced eager calls, counted so, too
  std::vector<const std::byte*> pointers_;
  std::vector<std::byte*> output_pointers_;
  std::vector<MemberBuffers> member_buffers_;

  std::string_view algorithm_ = "none";
  ChoiceReason reason_ = ChoiceReason::kSize;
  std::optional<TuningTable> tuning_;
};

}  // namespace cohort::node
