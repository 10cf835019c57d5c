// Mirrored variables: assignments, and updates of rows.
#include <cmath>
#include <utility>

#include "replicas.h"

namespace cohort::testing {
namespace {

// Mirrored variables: what replicas assign is aggregated, what is assigned elsewhere goes to all
// components.

constexpr auto kSum = VariableAggregation::kSum;
constexpr auto kMean = VariableAggregation::kMean;
constexpr auto kOnlyFirst = VariableAggregation::kOnlyFirstReplica;

class VariableCase : public Replicas {
 protected:
  [[nodiscard]] Variable of(double initial_value,
                            VariableAggregation aggregation = VariableAggregation::kNone) const {
    return made({.initial_value = Tensor::scalar(initial_value), .aggregation = aggregation});
  }
  /// The mean of the replicas' numbers.
  [[nodiscard]] double mean() const { return (replicas() - 1) / 2.0; }
};
COHORT_INSTANTIATE_CASES(VariableCase);

TEST_P(VariableCase, Case011_CountsStepsOnceForAllReplicas) {
  const Variable step = made({.initial_value = Tensor::scalar(std::int64_t{0}), .aggregation = kOnlyFirst});
  for (const int count : {1, 2}) {
    const auto seen = strategy_.run([&] { return step.assign_add(1).read().item<std::int64_t>(); });
    for_each_local(seen, [&](int, std::int64_t value) { EXPECT_EQ(value, count); });
    expect_components(step, count);
  }
}

TEST_P(VariableCase, Case028_SumsTheSameNumberOfEveryReplica) {
  const Variable variable = of(1, kSum);
  strategy_.run([&] { variable.assign(5.0); });
  expect_components(variable, 5 * replicas());
}

TEST_P(VariableCase, Case029_AssignsTheMean) {
  const Variable variable = of(1, kMean);
  const auto results = each([&](int r) { return variable.assign(r).read().item<double>(); });
  for_each_local(results, [&](int, double result) { EXPECT_DOUBLE_EQ(result, mean()); });
  expect_components(variable, mean());
}

TEST_P(VariableCase, Case031_SubtractsTheMean) {
  const Variable of_numbers = of(5, kMean);
  const Variable of_ones = of(5, kMean);
  strategy_.run([&](ReplicaContext& replica) {
    of_numbers.assign_sub(replica.replica_id_in_sync_group());
    of_ones.assign_sub(1.0);
  });
  expect_components(of_numbers, 5 - mean());
  expect_components(of_ones, 4);
}

TEST_P(VariableCase, Case032_AddsToEveryComponentOutsideReplicas) {
  const Variable variable = of(1);
  const auto scope = strategy_.scope();
  EXPECT_EQ(variable.assign_add(6).read().item<double>(), 7);
  expect_components(variable, 7);
  variable.assign_add(2);
  expect_components(variable, 9);
}

TEST_P(VariableCase, Case040_TakesTheFirstReplicasValue) {
  const Variable variable = of(15, kOnlyFirst);
  const auto results = each([&](int r) { return variable.assign(r).read().item<double>(); });
  for_each_local(results, [](int, double result) { EXPECT_EQ(result, 0); });
  expect_components(variable, 0);
}

TEST_P(VariableCase, Case041_TakesPerReplicaValuesInsideReplicasOnly) {
  const auto values = each([](int r) { return Tensor::scalar(2.0 + r); });
  const auto check = [&](VariableAggregation aggregation, const std::function<double(int)>& wanted) {
    const Variable variable = of(10, aggregation);
    strategy_.run([&] { variable.assign(values); });
    expect_components(variable, wanted);
    const auto scope = strategy_.scope();
    EXPECT_THROW(variable.assign(values), WrongContext) << "there, it would break the mirror";
    expect_components(variable, wanted);
  };
  check(kSum, [&](int) { return replicas() * (2 + mean()); });
  check(kMean, [&](int) { return 2 + mean(); });
  check(kOnlyFirst, [](int) { return 2; });
  check(VariableAggregation::kNone, [](int r) { return 2 + r; });
}

TEST_P(VariableCase, Case043_IsAssignedOutsideTheScope) {
  for (const auto aggregation : {VariableAggregation::kNone, kSum, kMean, kOnlyFirst}) {
    const Variable variable = of(1, aggregation);
    variable.assign(3);
    expect_components(variable, 3);
  }
}

TEST_P(VariableCase, Case053_IsReducedLikeAnyTensor) {
  const Variable variable = of(2);
  const auto sums = strategy_.run([&](ReplicaContext& replica) {
    return replica.all_reduce("sum", variable.read()).item<double>() + replica.replica_id_in_sync_group();
  });
  for_each_local(sums, [&](int r, double sum) { EXPECT_EQ(sum, 2 * replicas() + r); });
  expect_components(variable, 2);
}

// Updates of rows of mirrored variables.

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
