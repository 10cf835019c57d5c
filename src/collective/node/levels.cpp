#include "levels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "device/machine.h"
#include "endpoint.h"
#include "line_counter.h"

namespace cohort::node {
namespace {

/// The groups of the cores that this process may use. It does not change, and reading it takes milliseconds.
const std::vector<LevelGroups>& groups_of_cores() {
  static const std::vector<LevelGroups> groups = [] {
    const std::string description = config().topology();
    const std::vector<int> allowed = allowed_core_numbers();
    const auto may_use = [&](const Machine::Core& core) {
      return !description.empty() || std::ranges::find_first_of(core.threads, allowed) != core.threads.end();
    };
    std::vector<LevelGroups> found;
    try {
      const Machine machine = Machine::read(description);
      for (const Machine::Core& core : machine.cores())
        if (may_use(core)) found.push_back(core.group);
    } catch (const Unavailable&) {
      found.clear();
    }
    return found.empty() ? std::vector<LevelGroups>(1) : found;
  }();
  return groups;
}

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

/// Payloads follow each other at this distance, so that elements of any dtype are aligned.
std::size_t spacing(const OpenCall& open) { return (open.contents.payload_bytes + 7) / 8 * 8; }

}  // namespace

std::vector<LevelGroups> groups_of_members(const CoreSharers& sharers, int members) {
  const std::vector<LevelGroups>& cores = groups_of_cores();
  const auto own = static_cast<std::size_t>(members);
  const std::size_t all = own * static_cast<std::size_t>(sharers.count);
  std::vector<LevelGroups> groups;
  for (std::size_t member = 0; member < own; ++member) {
    const std::size_t index = static_cast<std::size_t>(sharers.own_index) * own + member;
    groups.push_back(cores[index * cores.size() / all]);
  }
  return groups;
}

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

LevelAnnouncements::LevelAnnouncements(const std::vector<TreePlace>& places, PriorityBlock* const* blocks,
                                       int local_rank, LineCounter* counter)
    : places_(places),
      place_(places[static_cast<std::size_t>(local_rank)]),
      blocks_(blocks),
      own_(*blocks[local_rank]),
      rank_(local_rank),
      counter_(counter),
      pointers_(places.size()) {}

bool LevelAnnouncements::advance(OpenCall& open) noexcept {
  if (open.disagreement) return true;
  if (sequence_ != open.sequence) begin(open);
  if (phase_ == Phase::kGather) {
    if (!gather(open)) return open.disagreement;
    phase_ = Phase::kAwaitRelease;
    if (place_.is_top()) {
      if (open.contents.goes_as_one()) make_one(open);
    } else if (!place_.children.empty()) {
      publish(own_.gathered[tree_line_of(open.sequence)], open);
    }
  }
  if (phase_ == Phase::kAwaitRelease) {
    if (!place_.is_top()) {
      const Line& release = block(place_.parent).released[tree_line_of(open.sequence)];
      if (release.word.load(std::memory_order_acquire) != open.word) return false;
      take_release(open);
    }
    if (!place_.children.empty()) publish(own_.released[tree_line_of(open.sequence)], open);
    phase_ = Phase::kReleased;
  }
  return true;
}

void LevelAnnouncements::begin(const OpenCall& open) noexcept {
  sequence_ = open.sequence;
  phase_ = Phase::kGather;
  next_child_ = 0;
  if (place_.children.empty()) return;
  std::memcpy(
      own_.all_payloads[tree_line_of(open.sequence)].data() + static_cast<std::size_t>(rank_) * spacing(open),
      own_.lines[open.rotation.line()].payload.data(), open.contents.payload_bytes);
}

/// True when all below this member have announced the same call as this one.
bool LevelAnnouncements::gather(OpenCall& open) noexcept {
  for (; next_child_ < place_.children.size(); ++next_child_) {
    const TreeChild& child = place_.children[next_child_];
    const Line& theirs = child.has_children ? block(child.member).gathered[tree_line_of(open.sequence)]
                                            : block(child.member).lines[open.rotation.line()];
    const std::uint64_t word = theirs.word.load(std::memory_order_acquire);
    if (word >> 32 != open.word >> 32) return false;
    if (word != open.word || !take_payloads(child, open)) {
      open.disagreement = true;
      return false;
    }
    if (counter_ != nullptr)
      note_read(child.member, theirs, child.has_children ? 0 : open.contents.payload_bytes);
  }
  return true;
}

/// False when the child's details differ from this member's.
bool LevelAnnouncements::take_payloads(const TreeChild& child, const OpenCall& open) noexcept {
  if (open.contents.payload_bytes == 0) return true;
  const std::size_t line = open.rotation.line();
  const std::size_t tree_line = tree_line_of(open.sequence);
  std::byte* const to = own_.all_payloads[tree_line].data();
  const PriorityBlock& theirs = block(child.member);
  const std::size_t distance = spacing(open);
  const auto offset_of = [distance](int member) { return static_cast<std::size_t>(member) * distance; };
  if (child.has_children) {
    for (MemberRange range : child.subtree) {
      if (const int source = open.contents.source; source >= 0) {
        if (source < range.begin || source >= range.end) continue;
        range = {source, source + 1};
      }
      const std::size_t bytes = offset_of(range.end) - offset_of(range.begin);
      std::memcpy(to + offset_of(range.begin), theirs.all_payloads[tree_line].data() + offset_of(range.begin),
                  bytes);
      if (counter_ != nullptr) counter_->moved(rank_, child.member, bytes);
    }
  } else {
    std::memcpy(to + offset_of(child.member), theirs.lines[line].payload.data(), open.contents.payload_bytes);
  }
  return !open.payload_has_details ||
         std::memcmp(to + offset_of(child.member), own_.lines[line].payload.data(), sizeof(CallDetails)) == 0;
}

/// Reduces by rank, as everywhere.
void LevelAnnouncements::make_one(const OpenCall& open) noexcept {
  const std::size_t line = tree_line_of(open.sequence);
  for (std::size_t member = 0; member < pointers_.size(); ++member)
    pointers_[member] = own_.all_payloads[line].data() + member * spacing(open);
  std::byte* const one = own_.released[line].payload.data();
  if (open.contents.kernel != nullptr)
    open.contents.kernel(pointers_, {&one, 1}, open.contents.elements, {});
  else
    std::memcpy(one, pointers_[static_cast<std::size_t>(open.contents.source)], open.contents.payload_bytes);
}

/// The parent's release brings the result or all payloads, which this member's children take from here.
void LevelAnnouncements::take_release(const OpenCall& open) noexcept {
  const std::size_t line = tree_line_of(open.sequence);
  const PriorityBlock& parent = block(place_.parent);
  const bool as_one = open.contents.goes_as_one();
  const std::size_t bytes = as_one ? open.contents.payload_bytes : places_.size() * spacing(open);
  if (counter_ != nullptr) note_read(place_.parent, parent.released[line], bytes);
  if (place_.children.empty() || bytes == 0) return;
  if (as_one)
    own_.released[line].payload = parent.released[line].payload;
  else
    std::memcpy(own_.all_payloads[line].data(), parent.all_payloads[line].data(), bytes);
}

void LevelAnnouncements::publish(Line& line, const OpenCall& open) noexcept {
  if (counter_ != nullptr) counter_->published(rank_, &line);
  line.word.store(open.word, std::memory_order_release);
  own_.bell.ring();
}

void LevelAnnouncements::note_read(int member, const Line& line, std::size_t payload_bytes) noexcept {
  counter_->read(rank_, &line);
  if (payload_bytes > 0) counter_->moved(rank_, member, payload_bytes);
}

const std::byte* LevelAnnouncements::payload_of(int member, const OpenCall& open) const noexcept {
  const PriorityBlock& holder = place_.children.empty() ? block(place_.parent) : own_;
  return holder.all_payloads[tree_line_of(open.sequence)].data() +
         static_cast<std::size_t>(member) * spacing(open);
}

const std::byte* LevelAnnouncements::result(const OpenCall& open) const noexcept {
  const PriorityBlock& holder = place_.children.empty() ? block(place_.parent) : own_;
  return holder.released[tree_line_of(open.sequence)].payload.data();
}

int LevelAnnouncements::awaited_member() const noexcept {
  if (phase_ == Phase::kGather && next_child_ < place_.children.size())
    return place_.children[next_child_].member;
  return place_.is_top() ? rank_ : place_.parent;
}

std::vector<int> LevelAnnouncements::find_idle(const std::vector<TreePlace>& places,
                                               PriorityBlock* const* blocks, const OpenCall& open) {
  const std::size_t line = open.rotation.line();
  const std::size_t tree_line = tree_line_of(open.sequence);
  const auto has = [&open](const Line& at) { return at.word.load(std::memory_order_acquire) == open.word; };
  std::vector<int> idle;
  for (std::size_t member = 0; member < places.size(); ++member) {
    const TreePlace& place = places[member];
    if (place.children.empty()) continue;
    const auto announced = [&](const TreeChild& child) {
      const PriorityBlock& block = *blocks[child.member];
      return has(child.has_children ? block.gathered[tree_line] : block.lines[line]);
    };
    const bool has_all = std::ranges::all_of(place.children, announced);
    const bool may_release = place.is_top() ? has_all : has(blocks[place.parent]->released[tree_line]);
    const bool has_gathered = place.is_top() || has(blocks[member]->gathered[tree_line]);
    if ((has_all && !has_gathered) || (may_release && !has(blocks[member]->released[tree_line])))
      idle.push_back(static_cast<int>(member));
  }
  return idle;
}

}  // namespace cohort::node
