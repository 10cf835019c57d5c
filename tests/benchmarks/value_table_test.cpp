#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <cohort/base/error.h>
#include <cohort/collective/reduction.h>

#include "exact_values.h"
#include "value_table.h"

namespace cohort::bench {
namespace {

/// The sequence 0, 1, 2, ... 1020, 0, 1, ...
ValueTable counting() {
  std::vector<std::uint32_t> numbers(ValueTable::kPeriod);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(i);
  return {sizeof(std::uint32_t), std::as_bytes(std::span(numbers))};
}

std::vector<std::uint32_t> written(std::size_t elements, std::size_t first) {
  std::vector<std::uint32_t> values(elements);
  counting().write(std::as_writable_bytes(std::span(values)), first);
  return values;
}

std::uint64_t wrong_in(const std::vector<std::uint32_t>& values, std::size_t first) {
  return counting().count_wrong(std::as_bytes(std::span(values)), first);
}

TEST(ValueTable, RepeatsItsPeriodFromAnyElementOn) {
  for (const std::size_t first :
       {std::size_t{0}, std::size_t{1}, std::size_t{1020}, std::size_t{5 * 1021 + 7}}) {
    const std::vector<std::uint32_t> values = written(5000, first);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(values[i], (first + i) % ValueTable::kPeriod)
          << "element " << i << " of those from " << first;
    }
  }
}

TEST(ValueTable, CountsElementsNotBytes) {
  std::vector<std::uint32_t> values = written(5000, 3);
  EXPECT_EQ(wrong_in(values, 3), 0u);
  values.front() ^= 0x101;
  values.back() ^= 0x80000000;
  EXPECT_EQ(wrong_in(values, 3), 2u);
}

TEST(ValueTable, TellsTheValuesOfAnotherIteration) {
  EXPECT_EQ(wrong_in(written(5000, 0), 389), 5000u);
  EXPECT_EQ(wrong_in(written(1, 0), 389), 1u);
}

TEST(ValueTable, TellsBlocksThatWereSwapped) {
  std::vector<std::uint32_t> values = written(4096, 0);
  std::swap_ranges(values.begin(), values.begin() + 2048, values.begin() + 2048);
  EXPECT_GT(wrong_in(values, 0), 0u);
}

TEST(ValueTable, TakesNothing) { EXPECT_EQ(wrong_in(written(0, 5), 5), 0u); }

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

using Bytes = std::vector<std::byte>;
using Case = std::tuple<DType, ReduceOp, int>;

constexpr std::array kAllOps{ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax,
                             ReduceOp::kProd};

/// More than two periods, and not a whole number of them.
constexpr std::size_t kElements = 2 * ValueTable::kPeriod + 17;

/// Every reduction that exists, for each of these numbers of members.
std::vector<Case> every_reduction(std::initializer_list<int> numbers_of_members) {
  std::vector<Case> cases;
  for (const DType dtype : kAllDTypes) {
    for (const ReduceOp op : kAllOps) {
      if (!is_legal(op, dtype)) continue;
      for (const int members : numbers_of_members) cases.emplace_back(dtype, op, members);
    }
  }
  return cases;
}

std::vector<Bytes> inputs_of_all(DType dtype, ReduceOp op, int members) {
  std::vector<Bytes> inputs;
  for (int member = 0; member < members; ++member) {
    Bytes& input = inputs.emplace_back(kElements * size_of(dtype));
    ExactValues(dtype, op, members).input(member).write(input, 0);
  }
  return inputs;
}

/// Combines two at a time and rounds to the dtype after each step, in the order of `order`: a
/// mean is the sum of all, divided last.
Bytes reduce_stepwise(DType dtype, ReduceOp op, const std::vector<Bytes>& inputs,
                      const std::vector<std::size_t>& order) {
  const ReduceOp step = op == ReduceOp::kMean ? ReduceOp::kSum : op;
  Bytes total = inputs[order.front()];
  for (std::size_t i = 1; i < order.size(); ++i) {
    const std::array<const std::byte*, 2> pair{total.data(), inputs[order[i]].data()};
    reduce_elements(dtype, step, pair, total.data(), kElements);
  }
  if (op == ReduceOp::kMean) divide_elements(dtype, total.data(), kElements, inputs.size());
  return total;
}

std::vector<std::size_t> in_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

std::uint64_t wrong_in(const Bytes& result, DType dtype, ReduceOp op, int members) {
  return ExactValues(dtype, op, members).reduced().count_wrong(result, 0);
}

class EveryReduction : public testing::TestWithParam<Case> {};

TEST_P(EveryReduction, IsExactInWhateverOrder) {
  const auto [dtype, op, members] = GetParam();
  const std::vector<Bytes> inputs = inputs_of_all(dtype, op, members);
  std::vector<std::size_t> order = in_order(inputs.size());
  EXPECT_EQ(wrong_in(reduce_stepwise(dtype, op, inputs, order), dtype, op, members), 0u);
  std::reverse(order.begin(), order.end());
  EXPECT_EQ(wrong_in(reduce_stepwise(dtype, op, inputs, order), dtype, op, members), 0u);
  std::stable_partition(order.begin(), order.end(), [](std::size_t member) { return member % 2 == 0; });
  EXPECT_EQ(wrong_in(reduce_stepwise(dtype, op, inputs, order), dtype, op, members), 0u);
}

TEST_P(EveryReduction, ShowsTheLossOfAnyMember) {
  const auto [dtype, op, members] = GetParam();
  if (members == 1) return;  // nothing would be left
  const std::vector<Bytes> inputs = inputs_of_all(dtype, op, members);
  for (std::size_t lost = 0; lost < inputs.size(); ++lost) {
    std::vector<std::size_t> order = in_order(inputs.size());
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(lost));
    // A mean without its last, unpaired member would divide by one less and be right.
    if (op == ReduceOp::kMean) order.push_back(order.back());
    EXPECT_GT(wrong_in(reduce_stepwise(dtype, op, inputs, order), dtype, op, members), 0u)
        << "without " << lost;
  }
}

TEST_P(EveryReduction, ShowsBlocksThatWereSwapped) {
  const auto [dtype, op, members] = GetParam();
  Bytes result = reduce_stepwise(dtype, op, inputs_of_all(dtype, op, members),
                                 in_order(static_cast<std::size_t>(members)));
  const auto block = static_cast<std::ptrdiff_t>(512 * size_of(dtype));
  std::swap_ranges(result.begin(), result.begin() + block, result.begin() + block);
  EXPECT_GT(wrong_in(result, dtype, op, members), 0u);
}

std::string name_of(const testing::TestParamInfo<EveryReduction::ParamType>& info) {
  const auto [dtype, op, members] = info.param;
  return fmt::format("{}_{}_{}members", to_string(dtype), to_string(op), members);
}

INSTANTIATE_TEST_SUITE_P(FewMembers, EveryReduction, testing::ValuesIn(every_reduction({1, 2, 3, 8})),
                         name_of);

/// More members than the type has room for, so that only some contribute to each element.
class ManyMembers : public testing::TestWithParam<Case> {};

TEST_P(ManyMembers, StillReduceExactly) {
  const auto [dtype, op, members] = GetParam();
  const std::vector<Bytes> inputs = inputs_of_all(dtype, op, members);
  const std::vector<std::size_t> order = in_order(inputs.size());
  EXPECT_EQ(wrong_in(reduce_stepwise(dtype, op, inputs, order), dtype, op, members), 0u);
}

INSTANTIATE_TEST_SUITE_P(InSixteenBits, ManyMembers,
                         testing::Values(Case(DType::kBFloat16, ReduceOp::kSum, 300),
                                         Case(DType::kBFloat16, ReduceOp::kMean, 130),
                                         Case(DType::kBFloat16, ReduceOp::kMean, 301),
                                         Case(DType::kBFloat16, ReduceOp::kProd, 130),
                                         Case(DType::kFloat16, ReduceOp::kProd, 64)),
                         name_of);

}  // namespace
}  // namespace cohort::bench
