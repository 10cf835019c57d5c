// Reductions and gathers outside replicas, of tensors and of IndexedSlices, and what a strategy reduces with.
#include <utility>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::SizeIs;

class ReduceCase : public Replicas {};
COHORT_INSTANTIATE_CASES(ReduceCase);

TEST_P(ReduceCase, Case016_SumsReplicaNumbers) {
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, each([](int r) { return r; })), total([](int r) { return r; }));
}

TEST_P(ReduceCase, Case017_SumsPairs) {
  const auto pairs = strategy_.run([](int x) { return std::pair(x + 1, x - 1); }, 3);
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, pairs), std::pair(4 * replicas(), 2 * replicas()));
}

TEST_P(ReduceCase, Case020_OfCpusIsACollective) {
  EXPECT_EQ(strategy_.extended().cross_device_ops().name(), "CollectiveAllReduce");
}

TEST_P(ReduceCase, Case064_SumsOnesFromAFunctionInsideAndOutsideTheScope) {
  const auto sum = [&] {
    return strategy_.reduce(ReduceOp::kSum,
                            strategy_.distribute_values_from_function([](ValueContext) { return 1.0; }));
  };
  EXPECT_EQ(sum(), replicas());
  const auto scope = strategy_.scope();
  EXPECT_EQ(sum(), replicas());
}

TEST_P(ReduceCase, Case065_ReducesAlongAnAxisToo) {
  const auto values = each([](int) { return Tensor::from({1.0, 2.0}); });
  EXPECT_EQ(strategy_.reduce(ReduceOp::kMean, values, 0).item<double>(), 1.5);
  EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, values, 0).item<double>(), 3 * replicas());
}

class GatherCase : public Replicas {};
COHORT_INSTANTIATE_CASES(GatherCase);

Tensor ones(const Shape& shape) { return Tensor::full(shape, DType::kFloat32, 1); }

TEST_P(GatherCase, Case079_TakesDifferentNumbersOfRows) {
  const Tensor gathered = strategy_.gather(each([](int r) { return ones({r + 1, 1}); }), 0);
  EXPECT_EQ(gathered.shape(), Shape({replicas() * (replicas() + 1) / 2, 1}));
  EXPECT_THAT(numbers(gathered), Each(1));
}

TEST_P(GatherCase, Case080_RefusesOtherExtentsThatDiffer) {
  if (replicas() == 1) GTEST_SKIP() << "one replica differs from nobody";
  const auto widths = each([](int r) { return ones({1, r + 1}); });
  EXPECT_THROW(static_cast<void>(strategy_.gather(widths, 0)), InvalidArgument);
}

TEST_P(GatherCase, Case080_RefusesRanksThatDiffer) {
  if (replicas() == 1) GTEST_SKIP() << "one replica differs from nobody";
  const auto ranks = each([](int r) { return r % 2 == 0 ? ones({1}) : ones({1, 1}); });
  EXPECT_THROW(static_cast<void>(strategy_.gather(ranks, 0)), InvalidArgument);
}

// IndexedSlices: reductions keep all rows, one replica's after the other's.

class SparseCase : public Replicas {};
COHORT_INSTANTIATE_CASES(SparseCase);

TEST_P(SparseCase, Case067_IsWorthItsDenseSum) {
  const auto check = [&](SumOrMean op, double wanted) {
    const auto dense = strategy_.run([&](ReplicaContext& replica) {
      const IndexedSlices one{Tensor::full({1, 1}, DType::kFloat64, 1), Tensor::from({0}), {5, 1}};
      return densify(replica.all_reduce(op, one));
    });
    for_each_local(dense, [&](int, const Tensor& sum) {
      EXPECT_EQ(sum.shape(), (Shape{5, 1}));
      EXPECT_THAT(numbers(sum), ElementsAre(::testing::DoubleEq(wanted), 0, 0, 0, 0));
    });
  };
  check("sum", replicas());
  check("mean", 1);
}

/// Replica r has `count(r)` rows, the first ones; over all replicas their values are 1, 2, 3, ...
class SparseParts {
 public:
  explicit SparseParts(int (*count)(int r)) : count_(count) {}

  [[nodiscard]] IndexedSlices of(int r) const {
    int before = 0;
    for (int other = 0; other < r; ++other) before += count_(other);
    const Tensor values = Tensor::uninitialized({count_(r), 1}, DType::kInt32);
    const Tensor indices = Tensor::uninitialized({count_(r)}, DType::kInt64);
    for (int row = 0; row < count_(r); ++row) {
      values.span<std::int32_t>()[static_cast<std::size_t>(row)] = before + row + 1;
      indices.span<std::int64_t>()[static_cast<std::size_t>(row)] = row;
    }
    return {values, indices, {100, 1}};
  }

  /// Expects all rows of so many replicas, in order, their values divided by `divisor`.
  void expect_all(const IndexedSlices& result, int replicas, double divisor = 1) const {
    std::vector<double> values;
    std::vector<double> indices;
    for (int r = 0; r < replicas; ++r) {
      for (int row = 0; row < count_(r); ++row) {
        indices.push_back(row);
        values.push_back(static_cast<double>(values.size() + 1) / divisor);
      }
    }
    EXPECT_THAT(numbers(result.values), ElementsAreArray(values));
    EXPECT_THAT(numbers(result.indices), ElementsAreArray(indices));
    EXPECT_EQ(result.dense_shape, (Shape{100, 1}));
  }

 private:
  int (*count_)(int r);
};

class SparsePartsCase : public Replicas {
 protected:
  void check(const SparseParts& parts) const {
    const auto slices = each([&](int r) { return parts.of(r); });
    parts.expect_all(strategy_.reduce("sum", slices), replicas());
    const IndexedSlices mean = strategy_.reduce("mean", slices);
    parts.expect_all(mean, replicas(), replicas());
    EXPECT_EQ(mean.values.dtype(), replicas() == 1 ? DType::kInt32 : DType::kFloat64);
    const auto sums = strategy_.extended().reduce_to("sum", slices, strategy_.extended().destinations());
    for_each_local(sums, [&](int, const IndexedSlices& sum) { parts.expect_all(sum, replicas()); });

    // Beside dense values in one list each keeps its place.
    const auto lists = strategy_.run([&](ReplicaContext& replica) {
      const int r = replica.replica_id_in_sync_group();
      const std::vector<TensorOrSlices> mixed{parts.of(r), Tensor::from({1.0 * r, 1.0}), parts.of(r)};
      return replica.all_reduce("sum", mixed);
    });
    for_each_local(lists, [&](int, const std::vector<TensorOrSlices>& sum) {
      parts.expect_all(std::get<IndexedSlices>(sum.at(0)), replicas());
      EXPECT_THAT(numbers(std::get<Tensor>(sum.at(1))),
                  ElementsAre(total([](int r) { return r; }), replicas()));
      parts.expect_all(std::get<IndexedSlices>(sum.at(2)), replicas());
    });
  }
};
COHORT_INSTANTIATE_CASES(SparsePartsCase);

TEST_P(SparsePartsCase, Case070_KeepAllRowsInOrder) {
  check(SparseParts([](int r) { return 2 * r + 1; }));
}

TEST_P(SparsePartsCase, Case070_MayBeEmpty) {
  check(SparseParts([](int r) { return r; }));
}

// What a strategy reduces with: values as their components, one per local replica, to destinations.

class CrossDeviceOpsCase : public Replicas {
 protected:
  [[nodiscard]] CrossDeviceOps& ops() const { return strategy_.extended().cross_device_ops(); }
  [[nodiscard]] Destinations everywhere() const { return strategy_.extended().destinations(); }

  /// `value(r)` of this process's replicas, on their devices.
  [[nodiscard]] Components components(const std::function<Tensor(int r)>& value) const {
    Components all;
    for_each_local(strategy_.run([&](ReplicaContext& replica) {
      return value(replica.replica_id_in_sync_group()).to(replica.device());
    }),
                   [&](int, const Tensor& tensor) { all.emplace_back(tensor); });
    return all;
  }

  /// Expects `wanted` on every local replica's device.
  void expect_everywhere(const Components& results, const std::vector<double>& wanted) const {
    ASSERT_THAT(results, SizeIs(local_replicas()));
    for (int local = 0; local < local_replicas(); ++local) {
      const Tensor& result = values_of(results[static_cast<std::size_t>(local)]);
      EXPECT_EQ(result.device(), strategy_.extended().device(local));
      EXPECT_THAT(numbers(result), ::testing::Pointwise(DoubleEq(), wanted));
    }
  }
};
COHORT_INSTANTIATE_CASES(CrossDeviceOpsCase);

TEST_P(CrossDeviceOpsCase, Case068_ReducesDenseValues) {
  const Components value = components([](int r) { return Tensor::from({r + 1.0, 10.0}); });
  const double sum = total([](int r) { return r + 1; });
  for (const auto implementation : {CommunicationImplementation::kAuto, CommunicationImplementation::kRing}) {
    const CommunicationOptions options{.implementation = implementation};
    expect_everywhere(ops().reduce("sum", value, everywhere(), options), {sum, 10.0 * replicas()});
    expect_everywhere(ops().reduce("mean", value, everywhere(), options), {sum / replicas(), 10});
  }
  const Components on_one = ops().reduce("sum", value, "cpu:5");
  ASSERT_THAT(on_one, SizeIs(1));
  EXPECT_EQ(values_of(on_one.front()).device(), Device::cpu(5));
  EXPECT_THAT(numbers(values_of(on_one.front())), ElementsAre(sum, 10 * replicas()));
}

TEST_P(CrossDeviceOpsCase, Case071_ReducesBatches) {
  // Value i of replica r is 2 r + 1 + i, so that of two replicas the first one has 1, 2 and the second 3, 4.
  constexpr int kValues = 5;
  const auto value = [&](int i) {
    return components([i](int r) { return Tensor::full({i + 1}, DType::kFloat64, 2 * r + 1 + i); });
  };
  std::vector<ReduceRequest> requests;
  requests.reserve(kValues);
  for (int i = 0; i < kValues; ++i) requests.push_back({value(i), everywhere()});
  for (const std::size_t bytes_per_pack : {0u, 1u, 40u}) {
    const CommunicationOptions options{.bytes_per_pack = bytes_per_pack};
    const auto sums = ops().batch_reduce("sum", requests, options);
    const auto means = ops().batch_reduce("mean", requests, options);
    ASSERT_THAT(sums, SizeIs(kValues));
    ASSERT_THAT(means, SizeIs(kValues));
    for (std::size_t i = 0; i < kValues; ++i) {
      const double mean = replicas() + static_cast<double>(i);
      expect_everywhere(means[i], std::vector<double>(i + 1, mean));
      expect_everywhere(sums[i], std::vector<double>(i + 1, mean * replicas()));
    }
  }
}

}  // namespace
}  // namespace cohort::testing
