#include "line_counter.h"

#include <algorithm>
#include <utility>

namespace cohort::node {
namespace {

constexpr double kLineBytes = 64;

bool is_far(Level level) { return level == Level::kMachine; }

}  // namespace

void LineCounter::Chain::take_longer(const Chain& other) {
  lines = std::max(lines, other.lines);
  far = std::max(far, other.far);
  nanoseconds = std::max(nanoseconds, other.nanoseconds);
}

LineCounter::LineCounter(std::vector<LevelGroups> groups, const LineCosts& costs)
    : groups_(std::move(groups)), costs_(costs), chains_(groups_.size()), read_(groups_.size()) {}

Level LineCounter::level_between(int member, int other) const {
  return nearest_shared_level(groups_[static_cast<std::size_t>(member)],
                              groups_[static_cast<std::size_t>(other)]);
}

void LineCounter::published(int member, const void* line, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  lines_[{line, count}] = {member, chains_[static_cast<std::size_t>(member)]};
}

void LineCounter::read(int member, const void* line, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  const auto found = lines_.find({line, count});
  if (found == lines_.end() || found->second.member == member) return;
  const Level level = level_between(member, found->second.member);
  Chain& chain = chains_[static_cast<std::size_t>(member)];
  chain.take_longer(found->second.before);
  ++chain.lines;
  if (is_far(level)) ++chain.far;
  chain.nanoseconds += costs_.line[static_cast<std::size_t>(level)];
}

void LineCounter::moved(int member, int owner, std::size_t bytes) {
  if (member == owner) return;
  const std::lock_guard lock(mutex_);
  const Level level = level_between(member, owner);
  read_[static_cast<std::size_t>(member)] += bytes;
  if (is_far(level)) between_sockets_ += bytes;
  chains_[static_cast<std::size_t>(member)].nanoseconds +=
      static_cast<double>(bytes) / kLineBytes * costs_.in_row[static_cast<std::size_t>(level)];
}

LineCounts LineCounter::counts() const {
  const std::lock_guard lock(mutex_);
  Chain longest;
  for (const Chain& chain : chains_) longest.take_longer(chain);
  return {longest.lines, longest.far, longest.nanoseconds, *std::ranges::max_element(read_),
          between_sockets_};
}

void LineCounter::restart() {
  const std::lock_guard lock(mutex_);
  std::ranges::fill(chains_, Chain());
  std::ranges::fill(read_, 0);
  between_sockets_ = 0;
  lines_.clear();
}

}  // namespace cohort::node
