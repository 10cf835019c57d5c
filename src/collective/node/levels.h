// The levels of a node, and the tree along which its members' announcements travel where there are many of
// them: members that share a cache first, then those of a NUMA node, of a socket, of the machine. A member
// looks at the lines of its children and at one of its parent, however many members there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "control_block.h"
#include "device/machine.h"
#include "device/node_memory.h"

namespace cohort::node {

class LineCounter;
struct OpenCall;

/// The groups that each of this process's `members` belongs to, as far as its cores tell. Processes that
/// share their cores are spread over them in the order of their ranks, and so are the members of each. Where
/// hwloc cannot read the machine, all are in one group.
/// @throws InvalidArgument for a COHORT_TOPOLOGY that cannot be read.
[[nodiscard]] std::vector<LevelGroups> groups_of_members(const CoreSharers& sharers, int members);

/// Members with consecutive local ranks.
struct MemberRange {
  int begin = 0;
  int end = 0;

  friend bool operator==(const MemberRange&, const MemberRange&) = default;
};

struct TreeChild {
  int member = 0;                    ///< local rank
  bool has_children = false;         ///< of its own
  std::vector<MemberRange> subtree;  ///< the members below it, and itself
};

/// Where one member is in the tree. Member 0 is at the top.
struct TreePlace {
  int parent = -1;                  ///< local rank; -1 at the top
  std::vector<TreeChild> children;  ///< the nearest first

  [[nodiscard]] bool is_top() const noexcept { return parent < 0; }
};

/// The place of each member, by local rank. `groups` says where each is in the machine. The members of one
/// group of a level meet at the one with the lowest rank; no member has more than 7 children per level, so
/// larger groups have levels of their own within.
[[nodiscard]] std::vector<TreePlace> make_level_tree(std::span<const LevelGroups> groups);

/// The members of each socket, in order, if those of each have consecutive ranks; otherwise nothing.
[[nodiscard]] std::vector<MemberRange> members_by_socket(std::span<const LevelGroups> groups);

/// How one member's announcements reach the others along the tree: each member gathers those of its children
/// and passes them on to its parent; once the member at the top has all, the release goes the same way down.
/// Payloads go along: all of them, that of one member, or what the member at the top makes of them by a
/// reduction.
///
/// A member passes nothing on that differs from its own call. Then all find the difference by looking at the
/// members' own lines, as they look for missing members after a while.
class LevelAnnouncements {
 public:
  /// `places` and `blocks` are the group's, by local rank, and outlive this object. `counter` may be null.
  LevelAnnouncements(const std::vector<TreePlace>& places, PriorityBlock* const* blocks, int local_rank,
                     LineCounter* counter);

  /// After this member's own line has the open call: takes what has come and passes it on. True once all
  /// members have announced the call, or when it is known that some member has called something else.
  [[nodiscard]] bool advance(OpenCall& open) noexcept;

  /// After `advance`: a member's payload, unless the contents go as one.
  [[nodiscard]] const std::byte* payload_of(int member, const OpenCall& open) const noexcept;
  /// What went as one.
  [[nodiscard]] const std::byte* result(const OpenCall& open) const noexcept;

  /// The member for whom this one waits.
  [[nodiscard]] int awaited_member() const noexcept;

  /// Members that have all that they need to pass the announcements of the open call on, and have not done
  /// so.
  [[nodiscard]] static std::vector<int> find_idle(const std::vector<TreePlace>& places,
                                                  PriorityBlock* const* blocks, const OpenCall& open);

 private:
  enum class Phase { kGather, kAwaitRelease, kReleased };

  [[nodiscard]] PriorityBlock& block(int member) const noexcept { return *blocks_[member]; }
  void begin(const OpenCall& open) noexcept;
  [[nodiscard]] bool gather(OpenCall& open) noexcept;
  [[nodiscard]] bool take_payloads(const TreeChild& child, const OpenCall& open) noexcept;
  void make_one(const OpenCall& open) noexcept;
  void take_release(const OpenCall& open) noexcept;
  void publish(Line& line, const OpenCall& open) noexcept;
  void note_read(int member, const Line& line, std::size_t payload_bytes) noexcept;

  const std::vector<TreePlace>& places_;
  const TreePlace& place_;
  PriorityBlock* const* blocks_;
  PriorityBlock& own_;
  int rank_;
  LineCounter* counter_;
  std::vector<const std::byte*> pointers_;  ///< a payload per member

  std::uint64_t sequence_ = 0;  ///< of the announcement that is under way
  Phase phase_ = Phase::kReleased;
  std::size_t next_child_ = 0;
};

}  // namespace cohort::node
