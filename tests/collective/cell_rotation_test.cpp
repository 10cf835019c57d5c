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

struct Rules {
  std::size_t lines = 2;
  std::size_t cells = kCells;
};

/// Pieces may be on their way before the announcements are: of all members, or of some.
enum class Way { kLine, kSlot, kSlotInShares, kPieces, kEarlyPieces, kPiecesOfSomeEarly, kDirect };

/// Which members contribute, and which read the contributions.
enum class Form { kAll, kFromRoot, kToRoot };

struct Call {
  Way way = Way::kLine;
  Form form = Form::kAll;
  int root = 0;
  int pieces = 0;
};

using Value = std::uint16_t;

/// What a member does at once; the shared memory is a list of small numbers.
struct Step {
  enum class Kind { kStore, kExpect, kAwait } kind;
  std::size_t place;  ///< of kAwait: that of member 0, the others follow
  Value value;        ///< stored, expected, or awaited of every member
};

constexpr Value kHalfWritten = 65535;

/// Places in the model's memory. Each member has words, payloads, slots, cells and two counters.
class Layout {
 public:
  explicit Layout(int members) : members_(static_cast<std::size_t>(members)) {}
  [[nodiscard]] std::size_t word(std::size_t line) const { return line * members_; }
  [[nodiscard]] std::size_t payload(int member, std::size_t line) const { return at(2 + line, member); }
  [[nodiscard]] std::size_t slot(const BufferLocation& location) const {
    return at(4 + location.index, location.owner);
  }
  [[nodiscard]] std::size_t cell(const BufferLocation& location) const {
    return at(6 + location.index, location.owner);
  }
  [[nodiscard]] std::size_t pieces() const { return (6 + kCells) * members_; }
  [[nodiscard]] std::size_t calls_done() const { return (7 + kCells) * members_; }
  /// The part of a slot that its owner has reduced.
  [[nodiscard]] std::size_t share(const BufferLocation& slot) const {
    return at(8 + kCells + slot.index, slot.owner);
  }
  [[nodiscard]] std::size_t size() const { return (10 + kCells) * members_; }

 private:
  [[nodiscard]] std::size_t at(std::size_t row, int member) const {
    return row * members_ + static_cast<std::size_t>(member);
  }
  std::size_t members_;
};

/// The steps of one member, as the engine takes them.
class Program {
 public:
  Program(int member, int members, const Rules& rules, const std::vector<Call>& calls)
      : member_(member), members_(members), rules_(rules), layout_(members) {
    for (const Call& call : calls) add(call);
  }
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  void add(const Call& call) {
    call_ = call;
    const std::size_t line = ++sequence_ % rules_.lines;
    const auto payload = [&](int member) { return layout_.payload(member, line); };
    const auto slot = [&](int member) { return layout_.slot(slot_of(member, slots_, members_)); };
    const bool in_slots = call.way == Way::kSlot || call.way == Way::kSlotInShares;
    if (!in_slots || contributes(member_)) write(in_slots ? slot(member_) : payload(member_));
    steps_.push_back({Step::Kind::kStore, layout_.word(line) + static_cast<std::size_t>(member_), sequence_});
    const bool early = call.way == Way::kEarlyPieces || (call.way == Way::kPiecesOfSomeEarly && member_ == 0);
    if (early) exchange_pieces();
    steps_.push_back({Step::Kind::kAwait, layout_.word(line), sequence_});
    switch (call.way) {
      case Way::kLine: return read_all(payload);
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

  void meet() {
    steps_.push_back(
        {Step::Kind::kStore, layout_.calls_done() + static_cast<std::size_t>(member_), ++calls_done_});
    steps_.push_back({Step::Kind::kAwait, layout_.calls_done(), calls_done_});
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
      steps_.push_back({Step::Kind::kAwait, layout_.pieces(), static_cast<Value>(reading + 1)});
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
  Value slots_ = 0;
  Value pieces_ = 0;
  Value calls_done_ = 0;
  std::vector<Step> steps_;
};

/// Goes through all interleavings of the members' steps.
class Explorer {
 public:
  Explorer(int members, const Rules& rules, const std::vector<Call>& calls)
      : memory_bytes_(Layout(members).size()) {
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
    switch (step.kind) {
      case Step::Kind::kStore: state[step.place] = step.value; break;
      case Step::Kind::kExpect:
        if (state[step.place] != step.value) return Outcome::kWrong;
        break;
      case Step::Kind::kAwait:
        // Words are compared for equality, counters for having come this far; no member is two ahead.
        if (std::any_of(awaited, awaited + std::ssize(programs_), [&](Value value) {
              return step.place < 2 * programs_.size() ? value != step.value : value < step.value;
            })) {
          return Outcome::kWaits;
        }
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

TEST(Turns, NeedTwoLinesAndFourCells) {
  const Call line{Way::kLine, Form::kAll, 0, 0};
  EXPECT_NE(Explorer(2, {.lines = 1}, {line, line}).find_fault(), "");
  EXPECT_NE(Explorer(3, {.cells = 3}, {{Way::kPieces, Form::kAll, 0, 6}}).find_fault(), "");
}

}  // namespace
}  // namespace cohort::node
