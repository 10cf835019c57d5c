// What a collective moves, as one member sees it: how large its buffers are, how they lie when
// input and output share memory, and what the result consists of.
#pragma once

#include <cstddef>
#include <vector>

namespace cohort::bench {

/// The member that alone gives or gets, in collectives that have one.
inline constexpr int kRoot = 0;

/// The role of one member in a collective of one size.
struct Role {
  int member = 0;
  int members = 1;
  std::size_t elements = 0;  ///< of the largest buffer of any member

  [[nodiscard]] bool is_root() const { return member == kRoot; }
  /// Elements of a member's part, where the largest buffer has one part for each.
  [[nodiscard]] std::size_t block() const { return elements / static_cast<std::size_t>(members); }
  [[nodiscard]] std::size_t block_start() const { return static_cast<std::size_t>(member) * block(); }
};

/// Consecutive elements of a result.
struct ResultPart {
  static constexpr int kReduced = -1;

  int source = kReduced;  ///< the member whose input it is, or the reduction of all inputs
  std::size_t first = 0;  ///< the element of the source that it begins with
  std::size_t elements = 0;
};

struct Layout {
  std::size_t input = 0;   ///< elements that this member passes in
  std::size_t output = 0;  ///< elements that it gets
  std::size_t offset = 0;  ///< in place: where the smaller of the two begins within the larger
  std::vector<ResultPart> result = {};
};

/// The members' whole inputs, one block after the other.
[[nodiscard]] std::vector<ResultPart> block_of_each(const Role& role);

/// The parts of an uneven division of role.elements: the higher the rank, the larger the part.
[[nodiscard]] std::vector<std::size_t> uneven_counts(const Role& role);

}  // namespace cohort::bench
