// The values that members put into a collective, and that its result is compared with. Knows nothing of
// Cohort, whose own types have the values of exact_values.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace cohort::bench {

/// An endless sequence of elements with a prime period, so that blocks that were swapped or shifted do not
/// look right. Starting somewhere else in it gives each iteration other values.
///
/// Writing it is as cheap as a program writing its gradients: from a table that stays in the first-level
/// cache, straight into the caches of the core that writes.
class ValueTable {
 public:
  static constexpr std::size_t kPeriod = 1021;

  /// `period` is kPeriod elements of `element_bytes` bytes each.
  ValueTable(std::size_t element_bytes, std::span<const std::byte> period);

  /// Fills `to`, a whole number of elements, with the sequence from element `first` on.
  void write(std::span<std::byte> to, std::size_t first) const;

  /// How many elements of `values` differ from the sequence from element `first` on.
  [[nodiscard]] std::uint64_t count_wrong(std::span<const std::byte> values, std::size_t first) const;

 private:
  std::size_t element_bytes_;
  std::vector<std::byte> table_;  ///< the period and one chunk more, so that every chunk is consecutive
};

/// The values that the members of a collective put in, and what comes of reducing them.
class ValueSource {
 public:
  virtual ~ValueSource() = default;
  [[nodiscard]] virtual ValueTable input(int member) const = 0;
  [[nodiscard]] virtual ValueTable reduced() const = 0;
};

/// Well mixed bits for a member and an index [Steele, Lea, Flood 2014: SplitMix64].
[[nodiscard]] constexpr std::uint64_t mixed_bits(std::uint64_t member, std::uint64_t index) {
  std::uint64_t z = (member << 32) + index + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// A type of elements and how many integers, from 0 on, it holds exactly.
struct NumberFormat {
  std::string_view name;
  std::size_t bytes;
  std::uint64_t integers;
  void (*store)(std::uint64_t integer, std::byte* to);
};

/// float32, float64, float16, bfloat16 or int32; nothing for another name.
[[nodiscard]] std::optional<NumberFormat> find_number_format(std::string_view name);

/// The sums that ExactValues has, for programs without Cohort: positive integers so small that their sum over
/// all members is exact in the type, in the few types that every MPI can add.
class IntegerValues final : public ValueSource {
 public:
  IntegerValues(const NumberFormat& format, int members) : format_(format), members_(members) {}

  [[nodiscard]] ValueTable input(int member) const override;
  [[nodiscard]] ValueTable reduced() const override;

 private:
  [[nodiscard]] std::uint64_t integer(int member, std::size_t index) const;

  NumberFormat format_;
  int members_;
};

}  // namespace cohort::bench
