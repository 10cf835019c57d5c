// Behaviour that the original's own tests describe, as numbered in docs/conformance.md. The
// cases are run with 1, 2, 3 and 4 replicas as devices of one process, and on 1, 2, 3 and 4
// ranks of one device and of two devices each. They say what comes out for any number of
// replicas; `r` is a replica's number among all. Cases of a certain number of workers are run
// with threads, and on as many ranks.
#pragma once

#include <functional>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/cluster/bootstrap.h>
#include <cohort/strategy/strategy.h>

namespace cohort::testing {

/// The layouts to run in: how many devices each process has.
[[nodiscard]] std::vector<int> devices_per_process();

/// A strategy over so many devices of each process. All processes make it together.
[[nodiscard]] Strategy make_strategy(int devices);

/// Returns when all processes are here.
void meet();

/// Calls `function` as each of so many workers: on threads of this process, or on the ranks. Where there are
/// not as many ranks, the test is skipped.
void as_workers(int workers, const std::function<void(Bootstrap&)>& function);

/// The elements of any tensor, as numbers.
[[nodiscard]] inline std::vector<double> numbers(const Tensor& tensor) {
  const Tensor wide = tensor.cast(DType::kFloat64);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

class Replicas : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] int replicas() const { return strategy_.num_replicas_in_sync(); }
  [[nodiscard]] int local_replicas() const { return strategy_.extended().local_replicas(); }
  [[nodiscard]] int workers() const { return strategy_.extended().workers(); }
  [[nodiscard]] int first_local() const { return strategy_.extended().first_replica_id(); }

  /// `value(r)` of this process's replicas.
  template <class Function>
  [[nodiscard]] auto each(Function value) const {
    return strategy_.run([&](ReplicaContext& replica) { return value(replica.replica_id_in_sync_group()); });
  }

  /// `check(r, component)` for the component of each of this process's replicas.
  template <class Value, class Check>
  void for_each_local(const Value& value, Check check) const {
    const auto local = strategy_.local_results(value);
    ASSERT_EQ(static_cast<int>(local.size()), local_replicas());
    for (std::size_t i = 0; i < local.size(); ++i) check(first_local() + static_cast<int>(i), local[i]);
  }

  /// A variable of the strategy.
  [[nodiscard]] Variable made(const VariableOptions& options) const {
    const auto scope = strategy_.scope();
    return Variable(options);
  }

  /// Expects component r of a variable of shape [] to be `wanted(r)`.
  void expect_components(const Variable& variable, const std::function<double(int r)>& wanted) const {
    for_each_local(variable, [&](int r, const Tensor& component) {
      EXPECT_DOUBLE_EQ(component.item<double>(), wanted(r)) << "component of replica " << r;
    });
  }
  void expect_components(const Variable& variable, double wanted) const {
    expect_components(variable, [wanted](int) { return wanted; });
  }

  /// The sum of `value(r)` over all replicas.
  template <class Function>
  [[nodiscard]] double total(Function value) const {
    double sum = 0;
    for (int r = 0; r < replicas(); ++r) sum += value(r);
    return sum;
  }

  const Strategy strategy_ = make_strategy(GetParam());
};

#define COHORT_INSTANTIATE_CASES(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Devices, Suite, ::testing::ValuesIn(devices_per_process()), \
                           ::testing::PrintToStringParamName())

}  // namespace cohort::testing
