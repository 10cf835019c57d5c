// Reductions give the bits of a plain loop over the members, by rank, wherever these are: threads
// of one process, processes of one node, nodes on which ranks follow each other or alternate.
#include <algorithm>

#include <gtest/gtest.h>

#include <cohort/collective/reduction.h>

#include "collective/choice/tuning_figures.h"
#include "communicator_contracts.h"
#include "members.h"
#include "pretended_cluster.h"
#include "reduction_inputs.h"

namespace cohort::testing {
namespace {

/// What nodes of two and one member would make of it, each with a sum of its own.
Tensor node_by_node(DType dtype, ReduceOp op, std::size_t elements) {
  const auto all_reduce = [&](int first, int last) {
    Tensor result = ordered_inputs(first, dtype, op, elements);
    for (int rank = first + 1; rank < last; ++rank) {
      const Tensor other = ordered_inputs(rank, dtype, op, elements);
      const std::byte* const inputs[] = {result.data(), other.data()};
      reduce_elements(dtype, op, inputs, result.data(), elements);
    }
    return result;
  };
  Tensor first = all_reduce(0, 1);
  const Tensor second = all_reduce(1, 3);
  const std::byte* const inputs[] = {first.data(), second.data()};
  reduce_elements(dtype, op, inputs, first.data(), elements);
  return first;
}

TEST(OrderedValues, ShowTheOrder) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kProd})
      EXPECT_FALSE(bitwise_equal(ordered_result(3, dtype, op, 1000), node_by_node(dtype, op, 1000)))
          << to_string(op) << " of " << to_string(dtype);
  }
}

/// On one node this holds without being asked for.
class ThreadsInRankOrder : public ::testing::TestWithParam<int> {};

TEST_P(ThreadsInRankOrder, FewElements) { for_each_member(GetParam(), check_rank_order); }
TEST_P(ThreadsInRankOrder, EverySize) { for_each_member(GetParam(), check_rank_order_of_sizes); }
TEST_P(ThreadsInRankOrder, Packs) { for_each_member(GetParam(), check_rank_order_of_packs); }

INSTANTIATE_TEST_SUITE_P(Members, ThreadsInRankOrder, ::testing::Values(2, 3, 4, 6, 7, 8));

class Reproducible : public ::testing::TestWithParam<Placement> {
 protected:
  static void run(void (*check)(Communicator&)) {
    for_each_member(GetParam(), check, {.reproducible = true});
  }
};

TEST_P(Reproducible, FewElements) { run(check_rank_order); }
TEST_P(Reproducible, EverySize) { run(check_rank_order_of_sizes); }
TEST_P(Reproducible, Packs) { run(check_rank_order_of_packs); }

/// The name of the algorithm that executes an all-reduce of a mebibyte.
std::string algorithm_of(const Placement& placement, DType dtype, ReduceOp op) {
  std::string name;
  const std::int64_t elements = (std::int64_t{1} << 20) / static_cast<std::int64_t>(size_of(dtype));
  for_each_member(placement,
                  [&](Communicator& communicator) {
                    communicator.all_reduce(Tensor::zeros({elements}, dtype), op);
                    if (communicator.rank() == 0) name = communicator.last_algorithm();
                  },
                  {.reproducible = true});
  return name;
}

TEST(ReproducibleSums, TakeTheWayThatThePlacementAllows) {
  // In place of a probe, after which the fastest way would be that of the moment.
  TuningStore::of_this_process().keep(shape_of_network(2, 4), TuningTable());
  TuningStore::of_this_process().keep(shape_of_network(3, 3), TuningTable());
  EXPECT_EQ(algorithm_of({{0, 0, 1, 1}}, DType::kFloat32, ReduceOp::kSum), "two_level_chain");
  EXPECT_EQ(algorithm_of({{0, 1, 0, 1}}, DType::kFloat32, ReduceOp::kSum), "two_level_rank_order");
  EXPECT_EQ(algorithm_of({{0, 0, 1, 1}}, DType::kFloat16, ReduceOp::kSum), "two_level_rank_order");
  EXPECT_EQ(algorithm_of({{0, 1, 2}}, DType::kFloat32, ReduceOp::kMean), "two_level_rank_order");
  EXPECT_EQ(algorithm_of({{0, 0, 1, 1}}, DType::kFloat32, ReduceOp::kMax), "two_level_ring");
  EXPECT_EQ(algorithm_of({{0, 0, 1, 1}}, DType::kInt32, ReduceOp::kSum), "two_level_ring");
  TuningStore::of_this_process().forget();
}

INSTANTIATE_TEST_SUITE_P(Placements, Reproducible,
                         ::testing::Values(Placement{{0, 0, 0}}, Placement{{0, 0, 0, 0, 0, 0, 0}},
                                           Placement{{0, 0}, 3}, Placement{{0, 1}}, Placement{{0, 1, 2}},
                                           Placement{{0, 1, 2, 3, 4}}, Placement{{0, 1}, 2},
                                           Placement{{0, 1}, 3}, Placement{{0, 1, 2}, 2},
                                           Placement{{0, 0, 1, 1}}, Placement{{0, 1, 0, 1}},
                                           Placement{{0, 0, 0, 1, 1, 1}}, Placement{{0, 1, 2, 0, 1, 2}},
                                           Placement{{0, 1, 0}}, Placement{{0, 1, 1, 2, 0, 1, 0}},
                                           Placement{{0, 1, 1, 0}, 2}, Placement{{0, 1, 0, 1, 0, 1, 0, 1}}),
                         [](const auto& instance) {
                           std::string name = to_string(instance.param);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace cohort::testing
