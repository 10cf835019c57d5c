// Groups of members of a simulated cluster: along the rows and columns of a grid of nodes, on one node, and
// within each other; side by side and beside their parent.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "no_errors.h"
#include "simulation/simulated_cluster.h"

namespace cohort::simulation {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Nodes in rows and columns.
struct Grid {
  int rows;
  int columns;
  int members;  ///< of each node

  [[nodiscard]] SimulatedClusterOptions cluster() const {
    return {.nodes = rows * columns, .members = members};
  }
  [[nodiscard]] int node_of(int rank) const { return rank / members; }
  [[nodiscard]] int row_of(int rank) const { return node_of(rank) / columns; }
  [[nodiscard]] int column_of(int rank) const { return node_of(rank) % columns; }
};

/// The sum of what all members have for which `is_in_group` holds.
template <class IsInGroup>
double sum_of(int members, IsInGroup is_in_group) {
  double sum = 0;
  for (int rank = 0; rank < members; ++rank) sum += is_in_group(rank) ? rank + 1.0 : 0;
  return sum;
}

/// A tensor of each member, which contains its rank plus 1.
std::vector<Tensor> ranks_of(int members, std::int64_t elements) {
  std::vector<Tensor> tensors;
  tensors.reserve(static_cast<std::size_t>(members));
  for (int rank = 0; rank < members; ++rank)
    tensors.push_back(Tensor::full({elements}, DType::kFloat32, rank + 1.0));
  return tensors;
}

bool contains_only(const Tensor& tensor, double value) {
  return std::ranges::all_of(tensor.span<float>(),
                             [=](float element) { return element == static_cast<float>(value); });
}

class SimulatedGroups : public ::testing::TestWithParam<Grid> {
 protected:
  enum Number { kRow, kColumn };

  /// Each member splits off its row, and then its column.
  void split() {
    expect_no_errors(cluster_.run(2, [&](Communicator& member, int call) {
      const int rank = member.rank();
      return cluster_.split(rank, member, call == kRow ? grid_.row_of(rank) : grid_.column_of(rank));
    }));
  }
  [[nodiscard]] Tensor& of(std::vector<Tensor>& tensors, const Communicator& member) const {
    return tensors[static_cast<std::size_t>(member.rank())];
  }
  void expect_sums(const std::vector<Tensor>& rows, const std::vector<Tensor>& columns) const {
    for (int rank = 0; rank < size_; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      const auto of_row = sum_of(size_, [&](int other) { return grid_.row_of(other) == grid_.row_of(rank); });
      const auto of_column =
          sum_of(size_, [&](int other) { return grid_.column_of(other) == grid_.column_of(rank); });
      EXPECT_TRUE(contains_only(rows[index], of_row)) << "member " << rank;
      EXPECT_TRUE(contains_only(columns[index], of_column)) << "member " << rank;
    }
  }

  Grid grid_ = GetParam();
  SimulatedCluster cluster_{GetParam().cluster()};
  int size_ = cluster_.size();
};

TEST_P(SimulatedGroups, SumOverRowsAndThenOverColumns) {
  split();
  for (const std::int64_t elements : {1, 1000, 50'000}) {
    std::vector<Tensor> rows = ranks_of(size_, elements);
    std::vector<Tensor> columns = ranks_of(size_, elements);
    expect_no_errors(cluster_.run(2, [&](Communicator& member, int call) {
      return cluster_.group(member.rank(), call)
          ->all_reduce_async(of(call == kRow ? rows : columns, member), ReduceOp::kSum);
    }));
    expect_sums(rows, columns);
  }
}

TEST_P(SimulatedGroups, SumOverRowsAndColumnsAtTheSameTime) {
  split();
  std::vector<Tensor> rows = ranks_of(size_, 50'000);
  std::vector<Tensor> columns = ranks_of(size_, 50'000);
  std::vector<Tensor> all = ranks_of(size_, 50'000);
  std::vector<Work> others;  // which end no later than the call of their member
  expect_no_errors(cluster_.run(1, [&](Communicator& member, int) {
    const int rank = member.rank();
    others.push_back(cluster_.group(rank, kRow)->all_reduce_async(of(rows, member), ReduceOp::kSum));
    others.push_back(cluster_.group(rank, kColumn)->all_reduce_async(of(columns, member), ReduceOp::kSum));
    return member.all_reduce_async(of(all, member), ReduceOp::kSum);
  }));
  expect_sums(rows, columns);
  const double sum = sum_of(size_, [](int) { return true; });
  for (const Tensor& tensor : all) EXPECT_TRUE(contains_only(tensor, sum));
}

INSTANTIATE_TEST_SUITE_P(Grids, SimulatedGroups,
                         ::testing::Values(Grid{1, 2, 1}, Grid{2, 2, 1}, Grid{3, 2, 2}, Grid{2, 4, 3},
                                           Grid{3, 5, 1}),
                         [](const auto& grid) {
                           return fmt::format("{}x{}x{}", grid.param.rows, grid.param.columns,
                                              grid.param.members);
                         });

TEST(SimulatedGroup, OfANodeTakesNoTime) {
  const Grid grid{1, 2, 3};
  SimulatedCluster cluster(grid.cluster());
  expect_no_errors(cluster.run(1, [&](Communicator& member, int) {
    return cluster.split(member.rank(), member, grid.node_of(member.rank()));
  }));
  for (const std::int64_t elements : {1, 100'000}) {
    const std::vector<Tensor> tensors = ranks_of(cluster.size(), elements);
    const SimulatedRun run = cluster.run(1, [&](Communicator& member, int) {
      Communicator& node = *cluster.group(member.rank(), 0);
      EXPECT_EQ(node.name(), "node");
      return node.all_reduce_async(tensors[static_cast<std::size_t>(member.rank())], ReduceOp::kSum);
    });
    expect_no_errors(run);
    EXPECT_EQ(run.seconds, 0);
    for (int rank = 0; rank < cluster.size(); ++rank)
      EXPECT_TRUE(contains_only(tensors[static_cast<std::size_t>(rank)], rank < 3 ? 6 : 15));
  }
}

TEST(SimulatedGroup, HasItsMembersInTheOrderOfTheirKeys) {
  SimulatedCluster cluster({.nodes = 4});
  expect_no_errors(cluster.run(1, [&](Communicator& member, int) {
    const int rank = member.rank();
    return cluster.split(rank, member, rank == 1 ? std::nullopt : std::optional(0), -rank);
  }));
  EXPECT_EQ(cluster.group(1, 0), nullptr) << "it takes part in none";
  EXPECT_EQ(cluster.group(0, 1), nullptr) << "there was one split";
  std::vector<std::string> hosts;
  for (const MemberInfo& member : cluster.group(0, 0)->members()) hosts.push_back(member.host);
  EXPECT_THAT(hosts, ElementsAre("node3", "node2", "node0"));
  EXPECT_EQ(cluster.group(0, 0)->rank(), 2);
  EXPECT_EQ(cluster.group(3, 0)->rank(), 0);
}

TEST(SimulatedGroup, DividesFurther) {
  SimulatedCluster cluster({.nodes = 8});
  const std::vector<Tensor> tensors = ranks_of(8, 20'000);
  expect_no_errors(cluster.run(3, [&](Communicator& member, int call) {
    const int rank = member.rank();
    if (call == 0) return cluster.split(rank, member, rank / 4);
    if (call == 1) return cluster.split(rank, *cluster.group(rank, 0), rank / 2);
    return cluster.group(rank, 1)->all_reduce_async(tensors[static_cast<std::size_t>(rank)], ReduceOp::kSum);
  }));
  for (int rank = 0; rank < 8; ++rank) {
    const double sum = sum_of(8, [&](int other) { return other / 2 == rank / 2; });
    EXPECT_TRUE(contains_only(tensors[static_cast<std::size_t>(rank)], sum));
  }
}

TEST(SimulatedGroup, NamesItsOwnMemberThatWasKilled) {
  constexpr int kKilled = 5;
  SimulatedCluster cluster({.nodes = 6,
                            .faults = {{.kind = Fault::Kind::kKill, .at_seconds = 1e-3, .member = kKilled}},
                            .communication = {.timeout_seconds = 2}});
  expect_no_errors(cluster.run(
      1, [&](Communicator& member, int) { return cluster.split(member.rank(), member, member.rank() % 2); }));
  ASSERT_LT(cluster.seconds(), 1e-3);
  constexpr int kCalls = 2000;
  const SimulatedRun run = cluster.run(
      kCalls, [&](Communicator& member, int) { return cluster.group(member.rank(), 0)->barrier_async(); });
  for (const int rank : {1, 3}) {
    const std::optional<Error>& error = run.errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error) << rank;
    EXPECT_EQ(error->origin().member, 2) << "its rank in the group; " << error->what();
    EXPECT_EQ(error->origin().host, "node5") << error->what();
  }
  for (const int rank : {0, 2, 4}) {
    EXPECT_FALSE(run.errors[static_cast<std::size_t>(rank)]) << "its group is whole";
    EXPECT_EQ(run.calls[static_cast<std::size_t>(rank)], kCalls);
  }
}

TEST(SimulatedGroup, IsNotBlamedForTheMemberForWhichItWaits) {
  SimulatedCluster cluster({.nodes = 4,
                            .faults = {{.kind = Fault::Kind::kKill, .at_seconds = 1e-3, .member = 3}},
                            .communication = {.timeout_seconds = 2}});
  expect_no_errors(cluster.run(
      1, [&](Communicator& member, int) { return cluster.split(member.rank(), member, member.rank() / 2); }));
  const SimulatedRun run = cluster.run(2000, [&](Communicator& member, int) {
    return (member.rank() < 2 ? member : *cluster.group(member.rank(), 0)).barrier_async();
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(run.errors[static_cast<std::size_t>(rank)]);
    EXPECT_THAT(run.errors[static_cast<std::size_t>(rank)]->what(),
                AllOf(HasSubstr("missing: member 3 (worker 3, host node3). They are stopped"),
                      HasSubstr("but answer: member 2 (worker 2, host node2).")));
  }
  ASSERT_TRUE(run.errors[2]);
  EXPECT_EQ(run.errors[2]->origin().host, "node3") << run.errors[2]->what();
}

TEST(SimulatedGroup, MayWaitForItsParentWhichWaitsForIt) {
  SimulatedCluster cluster({.nodes = 3, .communication = {.timeout_seconds = 2}});
  expect_no_errors(cluster.run(1, [&](Communicator& member, int) {
    return cluster.split(member.rank(), member, member.rank() > 0 ? 1 : 0);
  }));
  const SimulatedRun run = cluster.run(1, [&](Communicator& member, int) {
    return (member.rank() == 1 ? *cluster.group(1, 0) : member).barrier_async();
  });
  const std::array<int, 3> blamed{1, 2, 1};
  for (int rank = 0; rank < 3; ++rank) {
    const std::optional<Error>& error = run.errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error) << rank;
    EXPECT_EQ(error->origin().host, fmt::format("node{}", blamed[static_cast<std::size_t>(rank)]));
    EXPECT_THAT(error->what(), HasSubstr("They answer, but are not in this call"));
  }
}

/// The argument: from whom, on its node or on another one.
class MemberThatReceives : public ::testing::TestWithParam<int> {};

TEST_P(MemberThatReceives, AnswersFromThere) {
  SimulatedCluster cluster({.nodes = 2, .members = 2, .communication = {.timeout_seconds = 2}});
  const Tensor tensor = Tensor::zeros({1}, DType::kFloat32);
  const SimulatedRun run = cluster.run(1, [&](Communicator& member, int) {
    return member.rank() == 1 ? member.receive_async(tensor, GetParam(), 0, 100) : member.barrier_async();
  });
  for (const int rank : {0, 2, 3}) {
    const std::optional<Error>& error = run.errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error) << rank;
    EXPECT_THAT(error->what(), HasSubstr("missing: member 1 (worker 0, host node0). They answer, but"));
  }
}

INSTANTIATE_TEST_SUITE_P(From, MemberThatReceives, ::testing::Values(0, 2));

TEST(SimulatedNetwork, ThatIsCutIsReportedByAnEnd) {
  SimulatedCluster cluster(
      {.nodes = 4,
       .faults = {{.kind = Fault::Kind::kCut, .at_seconds = 1e-3, .node = 2, .other = 3}},
       .communication = {.timeout_seconds = 2}});
  const SimulatedRun run =
      cluster.run(2000, [&](Communicator& member, int) { return member.barrier_async(); });
  for (const std::optional<Error>& error : run.errors) {
    ASSERT_TRUE(error);
    EXPECT_THAT(error->origin().host, AnyOf("node2", "node3")) << error->what();
  }
}

TEST(SimulatedGroup, IsNotMadeWithAMemberThatWasKilled) {
  SimulatedCluster cluster({.nodes = 3,
                            .members = 2,
                            .faults = {{.kind = Fault::Kind::kKill, .member = 4}},
                            .communication = {.timeout_seconds = 2}});
  const SimulatedRun run = cluster.run(
      1, [&](Communicator& member, int) { return cluster.split(member.rank(), member, member.rank() % 2); });
  for (const int rank : {0, 1, 2, 3, 5}) {
    const std::optional<Error>& error = run.errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error) << rank;
    EXPECT_EQ(error->origin().member, 4) << error->what();
    EXPECT_EQ(cluster.group(rank, 0), nullptr);
  }
}

}  // namespace
}  // namespace cohort::simulation
