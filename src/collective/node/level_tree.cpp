#include "level_tree.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace cohort::node {
namespace {

constexpr std::size_t kWidest = 8;

/// Appends members in rising order.
void append(std::vector<MemberRange>& ranges, const MemberRange& range) {
  if (!ranges.empty() && ranges.back().end == range.begin)
    ranges.back().end = range.end;
  else
    ranges.push_back(range);
}

/// A member with all that are below it, in rising order.
std::vector<MemberRange> subtree_of(int member, const std::vector<TreePlace>& places) {
  std::vector<MemberRange> parts{{member, member + 1}};
  for (const TreeChild& child : places[static_cast<std::size_t>(member)].children)
    parts.insert(parts.end(), child.subtree.begin(), child.subtree.end());
  std::ranges::sort(parts, {}, &MemberRange::begin);
  std::vector<MemberRange> subtree;
  for (const MemberRange& part : parts) append(subtree, part);
  return subtree;
}

/// The first of `siblings` becomes the parent of the others.
void adopt(std::span<const int> siblings, std::vector<TreePlace>& places) {
  TreePlace& parent = places[static_cast<std::size_t>(siblings.front())];
  for (const int member : siblings.subspan(1)) {
    TreePlace& child = places[static_cast<std::size_t>(member)];
    child.parent = siblings.front();
    parent.children.push_back({member, !child.children.empty(), subtree_of(member, places)});
  }
}

/// Makes a tree of members that are equally near to each other; the first one is its top.
void gather(std::vector<int> members, std::vector<TreePlace>& places) {
  while (members.size() > 1) {
    const std::size_t groups = (members.size() + kWidest - 1) / kWidest;
    std::vector<int> parents;
    for (std::size_t group = 0; group < groups; ++group) {
      const std::size_t begin = group * members.size() / groups;
      const std::size_t end = (group + 1) * members.size() / groups;
      adopt(std::span(members).subspan(begin, end - begin), places);
      parents.push_back(members[begin]);
    }
    members = std::move(parents);
  }
}

}  // namespace

std::vector<TreePlace> make_level_tree(std::span<const LevelGroups> groups) {
  std::vector<TreePlace> places(groups.size());
  std::vector<int> tops(groups.size());
  std::iota(tops.begin(), tops.end(), 0);
  for (std::size_t level = 0; level < kLevels.size(); ++level) {
    std::map<int, std::vector<int>> by_group;
    for (const int top : tops) by_group[groups[static_cast<std::size_t>(top)][level]].push_back(top);
    tops.clear();
    for (const auto& [group, members] : by_group) {
      gather(members, places);
      tops.push_back(members.front());
    }
    std::ranges::sort(tops);
  }
  return places;
}

std::vector<MemberRange> members_by_socket(std::span<const LevelGroups> groups) {
  const auto socket_of = [](const LevelGroups& group) {
    return group[static_cast<std::size_t>(Level::kSocket)];
  };
  std::vector<MemberRange> ranges;
  std::set<int> sockets;
  for (std::size_t begin = 0; begin < groups.size();) {
    const int socket = socket_of(groups[begin]);
    if (!sockets.insert(socket).second) return {};
    std::size_t end = begin;
    while (end < groups.size() && socket_of(groups[end]) == socket) ++end;
    ranges.push_back({static_cast<int>(begin), static_cast<int>(end)});
    begin = end;
  }
  return ranges;
}

}  // namespace cohort::node
