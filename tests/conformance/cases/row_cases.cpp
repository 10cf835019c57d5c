// Updates of rows of mirrored variables.
#include <cmath>
#include <utility>

#include "replicas.h"

namespace cohort::testing {
namespace {

using Numbers = std::vector<double>;

Tensor tensor_of(const Numbers& values, DType dtype) {
  return Tensor::from(std::span<const double>(values), {static_cast<std::int64_t>(values.size())})
      .cast(dtype);
}

class RowCase : public Replicas {
 protected:
  /// A row for each replica and one more; row i begins with `initial(i)`.
  [[nodiscard]] Variable rows(DType dtype, VariableAggregation aggregation,
                              const std::function<double(int row)>& initial) const {
    Numbers values;
    for (int row = 0; row <= replicas(); ++row) values.push_back(initial(row));
    return made({.initial_value = tensor_of(values, dtype), .aggregation = aggregation});
  }

  /// Replica r changes the rows `of(r).first` by the values `of(r).second`.
  void run(const Variable& target, const Variable& (Variable::*change)(const IndexedSlices&) const,
           const std::function<std::pair<Numbers, Numbers>(int r)>& of) const {
    strategy_.run([&](ReplicaContext& replica) {
      const auto [indices, values] = of(replica.replica_id_in_sync_group());
      (target.*
       change)({tensor_of(values, target.dtype()), tensor_of(indices, DType::kInt64), target.shape()});
    });
  }

  /// Expects row i of every component to be `wanted(i)`.
  void expect_rows(const Variable& target, const std::function<double(int row)>& wanted) const {
    for_each_local(target, [&](int r, const Tensor& component) {
      for (int row = 0; row <= replicas(); ++row)
        EXPECT_NEAR(numbers(component)[static_cast<std::size_t>(row)], wanted(row), 1e-12)
            << "row " << row << " of replica " << r;
    });
  }
};
COHORT_INSTANTIATE_CASES(RowCase);

TEST_P(RowCase, Case044_SubtractTheMeanOfRows) {
  const Variable target = rows(DType::kFloat64, VariableAggregation::kMean, [](int) { return 0; });
  run(target, &Variable::scatter_sub, [](int r) {
    return std::pair(Numbers{1.0 * r, r + 1.0}, Numbers{1.0 * r, r + 1.0});
  });
  // Row i is named by replicas i - 1 and i, where there are such.
  expect_rows(target, [&](int row) {
    const int named = (row > 0 ? 1 : 0) + (row < replicas() ? 1 : 0);
    return -1.0 * named * row / replicas();
  });
}

TEST_P(RowCase, Case046_MultiplyByTheMeanOfRows) {
  const auto initial = [](int row) { return row == 0 ? 2.0 : 1.0; };
  const Variable target = rows(DType::kFloat64, VariableAggregation::kMean, initial);
  run(target, &Variable::scatter_mul, [](int r) { return std::pair(Numbers{1.0 * r}, Numbers{r + 2.0}); });
  expect_rows(target,
              [&](int row) { return initial(row) * (row < replicas() ? (row + 2.0) / replicas() : 1); });
}

TEST_P(RowCase, Case047_DivideByTheSumOfRows) {
  const auto initial = [&](int row) { return row == 0 || row == replicas() ? 1.0 : 6.0 * row; };
  for (const DType dtype : {DType::kInt32, DType::kFloat64}) {
    const Variable target = rows(dtype, VariableAggregation::kSum, initial);
    run(target, &Variable::scatter_div, [](int r) { return std::pair(Numbers{1.0 * r}, Numbers{r + 2.0}); });
    expect_rows(target, [&](int row) {
      if (row == replicas()) return 1.0;
      const double quotient = initial(row) / (row + 2);
      return dtype == DType::kInt32 ? std::floor(quotient) : quotient;
    });
  }
}

}  // namespace
}  // namespace cohort::testing
