#include "layout.h"

namespace cohort::bench {

std::vector<Piece> block_of_each(const Seat& seat) {
  std::vector<Piece> pieces;
  pieces.reserve(static_cast<std::size_t>(seat.members));
  for (int member = 0; member < seat.members; ++member) {
    pieces.push_back({.source = member, .first = 0, .elements = seat.block()});
  }
  return pieces;
}

std::vector<std::size_t> uneven_counts(const Seat& seat) {
  // Member r gets r + 1 shares of 1 + 2 + ... + members; what the division leaves, the last member.
  const auto members = static_cast<std::size_t>(seat.members);
  const std::size_t share = seat.elements / (members * (members + 1) / 2);
  std::vector<std::size_t> counts;
  counts.reserve(members);
  std::size_t left = seat.elements;
  for (std::size_t member = 0; member + 1 < members; ++member) {
    counts.push_back(share * (member + 1));
    left -= counts.back();
  }
  counts.push_back(left);
  return counts;
}

}  // namespace cohort::bench
