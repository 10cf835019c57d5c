// Behaviour that the original's own tests describe, as numbered in docs/conformance.md. The
// cases are run with 1, 2, 3 and 4 replicas: as devices of one process, and as ranks. They
// say what comes out for any number of replicas; `r` is a replica's number among all.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/strategy/strategy.h>

namespace cohort::testing {

/// The numbers of replicas to run with; 0 stands for one replica per rank.
[[nodiscard]] std::vector<int> replica_counts();

/// A strategy of so many replicas. Each rank has one of them, or all are in this process.
[[nodiscard]] Strategy make_strategy(int replicas);

class Replicas : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] int replicas() const { return strategy_.num_replicas_in_sync(); }

  /// `value(r)` of this process's replicas.
  template <class Function>
  [[nodiscard]] auto each(Function value) const {
    return strategy_.run([&](ReplicaContext& replica) { return value(replica.replica_id_in_sync_group()); });
  }

  /// `check(r, component)` for the component of each of this process's replicas.
  template <class Value, class Check>
  void for_each_local(const Value& value, Check check) const {
    const auto local = strategy_.local_results(value);
    ASSERT_EQ(static_cast<int>(local.size()), strategy_.extended().local_replicas());
    for (std::size_t i = 0; i < local.size(); ++i)
      check(strategy_.extended().first_replica_id() + static_cast<int>(i), local[i]);
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

/// The elements of any tensor, as numbers.
[[nodiscard]] inline std::vector<double> numbers(const Tensor& tensor) {
  const Tensor wide = tensor.cast(DType::kFloat64);
  return {wide.span<double>().begin(), wide.span<double>().end()};
}

[[nodiscard]] inline std::string layout_name(const ::testing::TestParamInfo<int>& replicas) {
  return replicas.param == 0 ? "ranks" : std::to_string(replicas.param);
}

#define COHORT_INSTANTIATE_CASES(Suite) \
  INSTANTIATE_TEST_SUITE_P(Replicas, Suite, ::testing::ValuesIn(replica_counts()), layout_name)

}  // namespace cohort::testing
