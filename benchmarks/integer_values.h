// The sums that ExactValues has, for programs without Cohort: positive integers so small that
// their sum over all members is exact in the type, in the few types that every MPI can add.
#pragma once

#include <optional>
#include <string_view>

#include "value_table.h"

namespace cohort::bench {

/// A type of elements and how many integers, from 0 on, it holds exactly.
struct NumberFormat {
  std::string_view name;
  std::size_t bytes;
  std::uint64_t integers;
  void (*store)(std::uint64_t integer, std::byte* to);
};

/// float32, float64, float16, bfloat16 or int32; nothing for another name.
[[nodiscard]] std::optional<NumberFormat> find_number_format(std::string_view name);

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
