#include "layout.h"

namespace cohort::bench {

std::vector<ResultPart> block_of_each(const Role& role) {
  std::vector<ResultPart> parts;
  parts.reserve(static_cast<std::size_t>(role.members));
  for (int member = 0; member < role.members; ++member) {
    parts.push_back({.source = member, .first = 0, .elements = role.block()});
  }
  return parts;
}

std::vector<std::size_t> uneven_counts(const Role& role) {
  // Member r gets r + 1 shares of 1 + 2 + ... + members; what the division leaves, the last member.
  const auto members = static_cast<std::size_t>(role.members);
  const std::size_t share = role.elements / (members * (members + 1) / 2);
  std::vector<std::size_t> counts;
  counts.reserve(members);
  std::size_t left = role.elements;
  for (std::size_t member = 0; member + 1 < members; ++member) {
    counts.push_back(share * (member + 1));
    left -= counts.back();
  }
  counts.push_back(left);
  return counts;
}

}  // namespace cohort::bench
