// IndexedSlices: reductions keep all rows, one replica's after the other's.
#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

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

}  // namespace
}  // namespace cohort::testing
