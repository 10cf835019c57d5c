// The library's collectives over a network that is only simulated: results, times and errors.
#include <map>
#include <vector>

#include <gmock/gmock.h>

#include "collective/network/cost_model.h"
#include "simulation/simulated_cluster.h"

namespace cohort::simulation {
namespace {

using ::testing::AllOf;
using ::testing::Gt;
using ::testing::Lt;

/// One tensor per member, kept alive by the test.
class Tensors {
 public:
  Tensors(int members, Shape shape, double (*value)(int rank)) {
    for (int rank = 0; rank < members; ++rank)
      tensors_.push_back(Tensor::full(shape, DType::kFloat32, value(rank)));
  }
  [[nodiscard]] const Tensor& of(const Communicator& member) const {
    return tensors_[static_cast<std::size_t>(member.rank())];
  }
  [[nodiscard]] const std::vector<Tensor>& all() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

void expect_no_errors(const SimulatedRun& run) {
  for (const std::optional<Error>& error : run.errors) EXPECT_FALSE(error) << error->what();
}

struct Layout {
  int nodes;
  int members;
};

class Simulation : public ::testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, Simulation,
                         ::testing::Values(Layout{2, 1}, Layout{3, 1}, Layout{4, 1}, Layout{7, 1},
                                           Layout{2, 3}, Layout{5, 4}),
                         [](const auto& layout) {
                           return fmt::format("{}x{}", layout.param.nodes, layout.param.members);
                         });

TEST_P(Simulation, SumsOverAllMembers) {
  SimulatedCluster cluster({.nodes = GetParam().nodes, .members = GetParam().members});
  const double sum = cluster.size() * (cluster.size() + 1) / 2.0;
  for (const std::int64_t elements : {1, 1000, 300'000}) {
    const Tensors tensors(cluster.size(), {elements}, [](int rank) { return rank + 1.0; });
    const SimulatedRun run = cluster.run(1, [&](Communicator& member, int) {
      return member.all_reduce_async(tensors.of(member), ReduceOp::kSum);
    });
    expect_no_errors(run);
    for (const Tensor& tensor : tensors.all()) {
      EXPECT_EQ(tensor.span<float>().front(), sum);
      EXPECT_EQ(tensor.span<float>().back(), sum);
    }
  }
}

TEST_P(Simulation, TakesTheTimeOfItsMessages) {
  SimulatedCluster cluster({.nodes = GetParam().nodes,
                            .members = GetParam().members,
                            .network = {.latency_seconds = 1e-3, .gap_seconds = 0}});
  const SimulatedRun run = cluster.run(1, [](Communicator& member, int) { return member.barrier_async(); });
  expect_no_errors(run);
  int rounds = 0;
  while (1 << rounds < GetParam().nodes) ++rounds;
  EXPECT_NEAR(run.seconds, rounds * 1e-3, 0.01e-3) << "dissemination";
}

/// What the cost model expects of a call of float32.
double expected_seconds(CollectiveKind kind, std::int64_t elements, const SimulatedClusterOptions& options) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * sizeof(float);
  return network::whole_call_seconds({.kind = kind,
                                      .dtype = DType::kFloat32,
                                      .elements = static_cast<std::size_t>(elements),
                                      .bytes = bytes,
                                      .members = options.nodes * options.members,
                                      .nodes = options.nodes},
                                     {.latency_seconds = options.network.latency_seconds,
                                      .seconds_per_byte = options.network.seconds_per_byte},
                                     options.network.eager_bytes);
}

/// The formulas leave out the gap between messages, and that lanes' latencies and transfers overlap.
TEST(SimulatedTimes, AreNearWhatTheCostModelExpects) {
  for (const int members : {1, 4}) {
    const SimulatedClusterOptions options{.nodes = 32, .members = members};
    SimulatedCluster cluster(options);
    const Tensors warm_up(cluster.size(), {100'000}, [](int) { return 1.0; });
    cluster.run(1, [&](Communicator& member, int) {
      return member.all_reduce_async(warm_up.of(member), ReduceOp::kSum);
    });
    EXPECT_NEAR(cluster.run(1, [](Communicator& member, int) { return member.barrier_async(); }).seconds,
                expected_seconds(CollectiveKind::kBarrier, 0, options), 1e-8)
        << "but for the bytes of the summaries";
    for (const std::int64_t elements : {1, 1000, 16'000}) {
      const Tensors tensors(cluster.size(), {elements}, [](int) { return 1.0; });
      const auto ratio = [&](CollectiveKind kind, const SimulatedCluster::Start& start) {
        return expected_seconds(kind, elements, options) / cluster.run(1, start).seconds;
      };
      EXPECT_THAT(ratio(CollectiveKind::kAllReduce,
                        [&](Communicator& member, int) {
                          return member.all_reduce_async(tensors.of(member), ReduceOp::kSum);
                        }),
                  AllOf(Gt(0.7), Lt(1.5)))
          << elements << " elements, " << members << " members on each node";
      EXPECT_THAT(
          ratio(CollectiveKind::kBroadcast,
                [&](Communicator& member, int) { return member.broadcast_async(tensors.of(member), 0); }),
          AllOf(Gt(0.7), Lt(1.5)))
          << elements << " elements, " << members << " members on each node";
    }
  }
}

TEST_P(Simulation, TakesTheSameTimeAgain) {
  const auto seconds = [] {
    SimulatedCluster cluster({.nodes = GetParam().nodes, .members = GetParam().members});
    const Tensors tensors(cluster.size(), {100'000}, [](int) { return 1.0; });
    return cluster
        .run(1, [&](Communicator& member,
                    int) { return member.all_reduce_async(tensors.of(member), ReduceOp::kSum); })
        .seconds;
  };
  EXPECT_EQ(seconds(), seconds());
}

TEST_P(Simulation, NamesAMemberThatWasKilled) {
  const int killed = GetParam().nodes * GetParam().members - 1;
  SimulatedCluster cluster({.nodes = GetParam().nodes,
                            .members = GetParam().members,
                            .faults = {{.kind = Fault::Kind::kKill, .member = killed}},
                            .communication = {.timeout_seconds = 2}});
  const SimulatedRun run = cluster.run(1, [](Communicator& member, int) { return member.barrier_async(); });
  for (int rank = 0; rank < killed; ++rank) {
    const std::optional<Error>& error = run.errors[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(error) << rank;
    EXPECT_EQ(error->origin().member, killed) << error->what();
  }
  EXPECT_LT(run.seconds, 4);
}

}  // namespace
}  // namespace cohort::simulation
