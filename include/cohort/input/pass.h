// One reading of a dataset from its start. Whatever differs from pass to pass, such as a shuffled order,
// follows from the pass's number alone, so a pass can be repeated, and resumed in its middle.
#pragma once

#include <cstdint>

namespace cohort {

namespace detail {

class Pass {
 public:
  /// The number of rounds where it is not known: more than any program reads.
  static constexpr std::uint64_t kManyRounds = std::uint64_t{1} << 40;

  constexpr explicit Pass(std::uint64_t number) : number_(number) {}

  [[nodiscard]] constexpr std::uint64_t number() const { return number_; }

  /// The pass over a source that is read `rounds` times within this one, in its round `round`. The source's
  /// passes have consecutive numbers: repeating it n times gives in one pass what n passes give.
  [[nodiscard]] constexpr Pass nested(std::uint64_t round, std::uint64_t rounds = kManyRounds) const {
    return Pass(number_ * rounds + round);
  }

 private:
  std::uint64_t number_;
};

}  // namespace detail

/// Where an iterator stands: enough to go on from there in another process.
struct DatasetPosition {
  std::uint64_t pass = 0;     ///< the number of the pass
  std::int64_t elements = 0;  ///< how many elements of it have been given
  friend bool operator==(const DatasetPosition&, const DatasetPosition&) = default;
};

}  // namespace cohort
