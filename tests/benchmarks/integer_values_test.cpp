#include "integer_values.h"

#include <vector>

#include <gtest/gtest.h>

#include "exact_values.h"

namespace cohort::bench {
namespace {

constexpr std::size_t kIntegers = 2 * ValueTable::kPeriod + 17;

std::vector<std::byte> values_of(const ValueTable& table, std::size_t element_bytes) {
  std::vector<std::byte> values(kIntegers * element_bytes);
  table.write(values, 5);
  return values;
}

// The peers are measured with the very values that Cohort is measured with.
TEST(IntegerValues, AreThoseOfExactSums) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt32}) {
    const NumberFormat format = find_number_format(to_string(dtype)).value();
    ASSERT_EQ(format.bytes, size_of(dtype));
    for (const int members : {1, 2, 3, 8}) {
      const ExactValues exact(dtype, ReduceOp::kSum, members);
      const IntegerValues integers(format, members);
      for (int member = 0; member < members; ++member) {
        EXPECT_EQ(values_of(integers.input(member), format.bytes),
                  values_of(exact.input(member), format.bytes))
            << to_string(dtype) << ", member " << member << " of " << members;
      }
      EXPECT_EQ(values_of(integers.reduced(), format.bytes), values_of(exact.reduced(), format.bytes))
          << to_string(dtype) << ", " << members << " members";
    }
  }
}

TEST(IntegerValues, ExistForFewTypes) { EXPECT_FALSE(find_number_format("int8").has_value()); }

}  // namespace
}  // namespace cohort::bench
