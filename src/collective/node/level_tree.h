// The tree along which announcements of a node's members travel where there are many of them: members that
// share a cache first, then those of a NUMA node, of a socket, of the machine. A member looks at the lines of
// its children and at one of its parent, however many members there are.
#pragma once

#include <span>
#include <vector>

#include "device/machine.h"

namespace cohort::node {

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

}  // namespace cohort::node
