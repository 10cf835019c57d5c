// What algorithms over powers of two do with the other members [Thakur, Rabenseifner,
// Gropp 2005, section 4.4]: of p = 2^k + r, the first 2r fold in pairs. The even one of
// a pair hands its data to the odd one, sits out, and is handed the result at the end.
// Costs 2 (alpha + n beta) + n gamma more, where r is not 0.
#pragma once

#include <cohort/collective/task.h>

#include "lane.h"

namespace cohort::network {

class Fold {
 public:
  explicit Fold(const Lane& lane);

  /// Members that take part after folding: a power of two.
  [[nodiscard]] int active_members() const noexcept { return active_members_; }
  [[nodiscard]] bool sits_out() const noexcept { return number_ < 0; }
  /// This member's number among the active ones.
  [[nodiscard]] int number() const noexcept { return number_; }
  /// The member of the lane that has a number among the active ones.
  [[nodiscard]] int member(int number) const noexcept {
    return number < pairs_ ? 2 * number + 1 : number + pairs_;
  }

  /// The number of the member that has the data of the lane's `index` after folding: its own, or its pair's.
  [[nodiscard]] int number_for(int index) const noexcept {
    return index < 2 * pairs_ ? index / 2 : index - pairs_;
  }

  /// Folds. Returns where an active member then finds its data: the input, or the output.
  [[nodiscard]] Task<const std::byte*> enter(Lane lane, Part part, Arithmetic arithmetic) const;
  /// Hands the result to the members that sat out.
  [[nodiscard]] Task<> leave(Lane lane, Part part, std::size_t element_bytes) const;

 private:
  [[nodiscard]] bool has_pair() const noexcept { return index_ < 2 * pairs_; }
  int index_;
  int active_members_;
  int pairs_;
  int number_;
};

}  // namespace cohort::network
