// Every order in which the steps of two and three members can interleave, for sequences of
// calls of all forms: no member reads a line, slot or cell that another has begun to write
// again, and none waits for ever. Fewer lines or cells are found to be too few.
#include "collective/node/control_block.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cohort::node {
namespace {

/// Pieces may be on their way before the announcements are: of all members, or of some.
enum class Way { kLine, kEager, kSlot, kSlotInShares, kPieces, kEarlyPieces, kPiecesOfSomeEarly, kDirect };

/// Which members contribute, and which read the contributions.
enum class Form { kAll, kFromRoot, kToRoot };

struct Call {
  Way way = Way::kLine;
  Form form = Form::kAll;
  int root = 0;
  int pieces = 0;
};

/// Of a call: its line, and the one on which members that have gone ahead see how far the others are.
struct LinesOfCall {
  std::size_t line = 0;
  std::size_t awaited = 0;
};

/// The rotation of the engine with fewer lines, so that a few calls use them again.
template <std::size_t kCommon, std::size_t kEager>
std::vector<LinesOfCall> lines_of(const std::vector<Call>& calls) {
  LineRotationOf<kCommon, kEager> rotation;
  std::vector<LinesOfCall> lines;
  for (const Call& call : calls) {
    rotation.open(call.way == Way::kEager);
    lines.push_back({rotation.line(), rotation.among_eager(1 - static_cast<int>(kEager / 2))});
  }
  return lines;
}

struct Rules {
  std::size_t lines = 6;
  std::size_t eager_lines = 4;
  std::vector<LinesOfCall> (*lines_of)(const std::vector<Call>&) = &node::lines_of<2, 4>;
  std::size_t cells = kCells;
  bool waits_for_line = true;  ///< who has gone ahead, before its next line is used again
};

using Value = std::uint16_t;

/// What a member does at once; the shared memory is a list of small numbers.
struct Step {
  enum class Kind { kStore, kExpect, kAwaitOne, kAwaitAll, kAwaitAtLeast } kind;
  std::size_t place;  ///< of the last two: that of member 0, the others follow
  Value value;        ///< stored, expected, or awaited
};

constexpr Value kHalfWritten = 65535;

/// Places in the model's memory. Each member has words, payloads, slots, cells and two counters.
class Layout {
 public:
  Layout(int members, const Rules& rules)
      : members_(static_cast<std::size_t>(members)), lines_(rules.lines) {}
  [[nodiscard]] std::size_t word(std::size_t line) const { return line * members_; }
  [[nodiscard]] std::size_t payload(int member, std::size_t line) const { return at(lines_ + line, member); }
  [[nodiscard]] std::size_t slot(const BufferLocation& location) const {
    return at(2 * lines_ + location.index, location.owner);
  }
  [[nodiscard]] std::size_t cell(const BufferLocation& location) const {
    return at(2 * lines_ + 2 + location.index, location.owner);
  }
  [[nodiscard]] std::size_t pieces() const { return at(2 * lines_ + 2 + kCells, 0); }
  [[nodiscard]] std::size_t calls_done() const { return at(2 * lines_ + 3 + kCells, 0); }
  /// The part of a slot that its owner has reduced.
  [[nodiscard]] std::size_t share(const BufferLocation& slot) const {
    return at(2 * lines_ + 4 + kCells + slot.index, slot.owner);
  }
  [[nodiscard]] std::size_t size() const { return at(2 * lines_ + 6 + kCells, 0); }

 private:
  [[nodiscard]] std::size_t at(std::size_t row, int member) const {
    return row * members_ + static_cast<std::size_t>(member);
  }
  std::size_t members_;
  std::size_t lines_;
};

/// The steps of one member, as the engine takes them.
class Program {
 public:
  Program(int member, int members, const Rules& rules, const std::vector<Call>& calls)
      : member_(member), members_(members), rules_(rules), layout_(members, rules) {
    const std::vector<LinesOfCall> lines = rules.lines_of(calls);
    for (std::size_t i = 0; i < calls.size(); ++i) add(calls[i], lines[i]);
  }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  void add(const Call& call, const LinesOfCall& lines) {
    call_ = call;
    ++sequence_;
    const std::size_t line = lines.line;
    const auto payload = [&](int member) { return layout_.payload(member, line); };
    const auto slot = [&](int member) { return layout_.slot(slot_of(member, slots_, members_)); };
    const bool in_slots = call.way == Way::kSlot || call.way == Way::kSlotInShares;
    if (!in_slots || contributes(member_)) write(in_slots ? slot(member_) : payload(member_));
    steps_.push_back({Step::Kind::kStore, layout_.word(line) + static_cast<std::size_t>(member_), sequence_});
    if (call.way == Way::kEager) return end_eager(payload, lines);
    const bool early = call.way == Way::kEarlyPieces || (call.way == Way::kPiecesOfSomeEarly && member_ == 0);
    if (early) exchange_pieces();
    steps_.push_back({Step::Kind::kAwaitAll, layout_.word(line), sequence_});
    all_have_announced_ = sequence_;
    switch (call.way) {
      case Way::kLine:
      case Way::kEager: return read_all(payload);
      case Way::kSlot:
        read_all(slot);
        ++slots_;
        return;
      case Way::kSlotInShares: {
        const auto share = [&](int member) { return layout_.share(slot_of(member, slots_, members_)); };
        read_all(slot);
        write(share(member_), 1);
        meet();
        read_all(share, 1);
        read_all(slot);
        ++slots_;
        return;
      }
      case Way::kPieces:
      case Way::kEarlyPieces:
      case Way::kPiecesOfSomeEarly:
        read_payloads(payload);
        if (!early) exchange_pieces();
        return;
      case Way::kDirect: read_all(payload); meet();
    }
  }

  template <class PlaceOf>
  void end_eager(PlaceOf payload, const LinesOfCall& call_lines) {
    const std::size_t words = layout_.word(call_lines.line);
    if (reads() && call_.form == Form::kFromRoot) {
      steps_.push_back({Step::Kind::kAwaitOne, words + static_cast<std::size_t>(call_.root), sequence_});
      if (members_ == 2) all_have_announced_ = sequence_;
    } else if (reads()) {
      steps_.push_back({Step::Kind::kAwaitAll, words, sequence_});
      all_have_announced_ = sequence_;
    }
    read_all(payload);
    const auto lines = static_cast<Value>(rules_.eager_lines);
    if (!rules_.waits_for_line || sequence_ + 1 - all_have_announced_ < lines) return;
    all_have_announced_ = static_cast<Value>(sequence_ + 1 - lines / 2);
    steps_.push_back({Step::Kind::kAwaitAtLeast, layout_.word(call_lines.awaited), all_have_announced_});
  }

  void meet() {
    steps_.push_back(
        {Step::Kind::kStore, layout_.calls_done() + static_cast<std::size_t>(member_), ++calls_done_});
    steps_.push_back({Step::Kind::kAwaitAtLeast, layout_.calls_done(), calls_done_});
  }

  void exchange_pieces() {
    for (int step = 0; step <= call_.pieces; ++step) {
      if (step < call_.pieces) {
        if (contributes(member_)) write(cell(member_, pieces_), pieces_);
        steps_.push_back(
            {Step::Kind::kStore, layout_.pieces() + static_cast<std::size_t>(member_), ++pieces_});
      }
      if (step == 0) continue;
      const auto reading = static_cast<Value>(pieces_ - (step < call_.pieces ? 2 : 1));
      steps_.push_back({Step::Kind::kAwaitAtLeast, layout_.pieces(), static_cast<Value>(reading + 1)});
      read_all([&](int member) { return cell(member, reading); }, reading);
    }
  }

  [[nodiscard]] std::size_t cell(int member, std::uint64_t piece) const {
    return layout_.cell(cell_of(member, piece, members_, rules_.cells));
  }
  [[nodiscard]] bool contributes(int member) const {
    return call_.form != Form::kFromRoot || member == call_.root;
  }
  [[nodiscard]] bool reads() const {
    return call_.form == Form::kAll || (call_.form == Form::kToRoot) == (member_ == call_.root);
  }
  /// What `member` writes in this call as the piece of this number.
  [[nodiscard]] Value mark(int member, Value piece) const {
    return static_cast<Value>(1 + (sequence_ * 32 + piece) * members_ + member);
  }
  void write(std::size_t place, Value piece = 0) {
    steps_.push_back({Step::Kind::kStore, place, kHalfWritten});
    steps_.push_back({Step::Kind::kStore, place, mark(member_, piece)});
  }
  /// Where the buffers are is said by everybody to everybody.
  template <class PlaceOf>
  void read_payloads(PlaceOf place_of) {
    for (int member = 0; member < members_; ++member) {
      if (member != member_) steps_.push_back({Step::Kind::kExpect, place_of(member), mark(member, 0)});
    }
  }
  /// Reading takes time: what is read must be right at its beginning and at its end.
  template <class PlaceOf>
  void read_all(PlaceOf place_of, Value piece = 0) {
    if (!reads()) return;
    for (int moment = 0; moment < 2; ++moment) {
      for (int member = 0; member < members_; ++member) {
        if (member == member_ || !contributes(member)) continue;
        steps_.push_back({Step::Kind::kExpect, place_of(member), mark(member, piece)});
      }
    }
  }

  int member_;
  int members_;
  Rules rules_;
  Layout layout_;
  Call call_;
  Value sequence_ = 0;
  Value all_have_announced_ = 0;
  Value slots_ = 0;
  Value pieces_ = 0;
  Value calls_done_ = 0;
  std::vector<Step> steps_;
};

/// Goes through all interleavings of the members' steps.
class Explorer {
 public:
  Explorer(int members, const Rules& rules, const std::vector<Call>& calls)
      : memory_bytes_(Layout(members, rules).size()) {
    for (int member = 0; member < members; ++member)
      programs_.push_back(Program(member, members, rules, calls).steps());
  }

  /// What goes wrong in some order; empty if nothing does in any.
  std::string find_fault() {
    std::vector<State> left{State(memory_bytes_ + programs_.size(), 0)};
    seen_.insert(left.back());
    while (!left.empty()) {
      const State state = left.back();
      left.pop_back();
      bool moved = false;
      bool ended = true;
      for (std::size_t member = 0; member < programs_.size(); ++member) {
        if (at(state, member) == programs_[member].size()) continue;
        ended = false;
        State next = state;
        const Outcome outcome = step(next, member);
        if (outcome == Outcome::kWrong)
          return "member " + std::to_string(member) + " reads what it should not";
        if (outcome == Outcome::kWaits) continue;
        moved = true;
        if (seen_.insert(next).second) left.push_back(std::move(next));
      }
      if (!moved && !ended) return "all wait for ever";
    }
    return "";
  }

 private:
  using State = std::vector<Value>;  ///< the memory, and how far each member is
  enum class Outcome { kMoved, kWaits, kWrong };

  [[nodiscard]] std::size_t at(const State& state, std::size_t member) const {
    return state[memory_bytes_ + member];
  }

  Outcome step(State& state, std::size_t member) const {
    const Step& step = programs_[member][at(state, member)];
    const auto awaited = state.begin() + static_cast<std::ptrdiff_t>(step.place);
    const auto others = awaited + std::min(std::ssize(programs_), state.end() - awaited);
    switch (step.kind) {
      case Step::Kind::kStore: state[step.place] = step.value; break;
      case Step::Kind::kExpect:
        if (state[step.place] != step.value) return Outcome::kWrong;
        break;
      case Step::Kind::kAwaitOne:
        if (state[step.place] != step.value) return Outcome::kWaits;
        break;
      case Step::Kind::kAwaitAll:
        if (!std::all_of(awaited, others, [&](Value value) { return value == step.value; }))
          return Outcome::kWaits;
        break;
      case Step::Kind::kAwaitAtLeast:
        if (!std::all_of(awaited, others, [&](Value value) { return value >= step.value; }))
          return Outcome::kWaits;
    }
    ++state[memory_bytes_ + member];
    return Outcome::kMoved;
  }

  std::size_t memory_bytes_;
  std::vector<std::vector<Step>> programs_;
  std::set<State> seen_;
};

std::vector<Call> calls_of_all_forms(int members) {
  std::vector<Call> calls;
  for (const Way way : {Way::kLine, Way::kSlot, Way::kPieces}) {
    const int pieces = way == Way::kPieces ? 3 : 0;
    calls.push_back({way, Form::kAll, 0, pieces});
    calls.push_back({way, Form::kFromRoot, 0, pieces});
    calls.push_back({way, Form::kToRoot, members - 1, pieces});
  }
  calls.push_back({Way::kEarlyPieces, Form::kAll, 0, 3});
  calls.push_back({Way::kPiecesOfSomeEarly, Form::kFromRoot, 0, 3});
  calls.push_back({Way::kDirect, Form::kAll, 0, 0});
  if (members > 2) {
    calls.push_back({Way::kSlotInShares, Form::kAll, 0, 0});
    calls.push_back({Way::kSlotInShares, Form::kToRoot, 0, 0});
  }
  return calls;
}

TEST(Turns, OfTwoMembersHoldInEveryOrderOfThreeCalls) {
  const std::vector<Call> calls = calls_of_all_forms(2);
  for (const Call& first : calls) {
    for (const Call& second : calls) {
      for (const Call& third : calls) ASSERT_EQ(Explorer(2, {}, {first, second, third}).find_fault(), "");
    }
  }
}

TEST(Turns, OfThreeMembersHoldInEveryOrderOfTwoCalls) {
  const std::vector<Call> calls = calls_of_all_forms(3);
  for (const Call& first : calls) {
    for (const Call& second : calls) ASSERT_EQ(Explorer(3, {}, {first, second}).find_fault(), "");
  }
}

TEST(Turns, HoldWhenTheCellsGoRoundSeveralTimes) {
  for (const Form form : {Form::kAll, Form::kFromRoot, Form::kToRoot}) {
    EXPECT_EQ(Explorer(2, {}, {{Way::kPieces, form, 0, 11}}).find_fault(), "");
    EXPECT_EQ(Explorer(3, {}, {{Way::kPieces, form, 0, 7}}).find_fault(), "");
    const Call early{Way::kEarlyPieces, form, 0, 3};
    EXPECT_EQ(Explorer(2, {}, {early, early, early}).find_fault(), "");
    EXPECT_EQ(Explorer(3, {}, {early, early}).find_fault(), "");
  }
}

TEST(Turns, HoldWhenSlotsAndLinesAreUsedAgainAndAgain) {
  const Call slot{Way::kSlot, Form::kFromRoot, 0, 0};
  const Call line{Way::kLine, Form::kToRoot, 0, 0};
  for (const int members : {2, 3}) {
    EXPECT_EQ(Explorer(members, {}, {slot, slot, slot, slot}).find_fault(), "");
    EXPECT_EQ(Explorer(members, {}, {line, line, line, line}).find_fault(), "");
  }
}

TEST(Turns, HoldWhenThoseThatOnlySendGoAhead) {
  for (const int members : {2, 3}) {
    const Call from_root{Way::kEager, Form::kFromRoot, 0, 0};
    const Call to_root{Way::kEager, Form::kToRoot, 0, 0};
    const Call to_other{Way::kEager, Form::kToRoot, 1, 0};
    const Call line{Way::kLine, Form::kAll, 0, 0};
    const Call slot{Way::kSlot, Form::kAll, 0, 0};
    EXPECT_EQ(Explorer(members, {}, std::vector(7, from_root)).find_fault(), "");
    EXPECT_EQ(Explorer(members, {}, std::vector(7, to_root)).find_fault(), "");
    EXPECT_EQ(Explorer(members, {}, {to_root, to_root, to_root, line, to_root, to_root}).find_fault(), "");
    EXPECT_EQ(Explorer(members, {}, {from_root, to_root, to_other, from_root, to_root}).find_fault(), "");
    EXPECT_EQ(Explorer(members, {}, {slot, from_root, slot, to_other, to_other, slot}).find_fault(), "");
    EXPECT_EQ(Explorer(members, {}, {from_root, line, line, line, from_root, from_root, line}).find_fault(),
              "");
  }
}

TEST(Turns, WouldOvertakeReadersWithoutWaitingForALine) {
  constexpr Rules kRules{.waits_for_line = false};
  EXPECT_NE(Explorer(2, kRules, std::vector(6, Call{Way::kEager, Form::kToRoot, 0, 0})).find_fault(), "");
  EXPECT_NE(Explorer(2, kRules, std::vector(6, Call{Way::kEager, Form::kFromRoot, 0, 0})).find_fault(), "");
}

TEST(Turns, NeedTwoLinesAndFourCells) {
  const Call line{Way::kLine, Form::kAll, 0, 0};
  const Rules one_line{.lines = 5, .lines_of = &lines_of<1, 4>};
  EXPECT_NE(Explorer(2, one_line, {line, line}).find_fault(), "");
  EXPECT_NE(Explorer(3, {.cells = 3}, {{Way::kPieces, Form::kAll, 0, 6}}).find_fault(), "");
}

}  // namespace
}  // namespace cohort::node
