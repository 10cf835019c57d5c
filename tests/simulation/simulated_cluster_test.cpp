// The library over a network that is only simulated: results, times and errors, and thousands of jobs in
// which something goes wrong.
#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/network/cost_model.h"
#include "no_errors.h"
#include "simulation/fault_schedule.h"
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

/// The call's own time, after its roll call. One member on each node, no rendezvous and no gap between
/// messages.
double seconds_after_roll_call(int nodes, const SimulatedCluster::Start& start, std::string_view algorithm) {
  constexpr std::size_t kNoLimit = std::size_t{1} << 30;
  SimulatedCluster cluster(
      {.nodes = nodes, .network = {.gap_seconds = 0, .eager_bytes = kNoLimit, .message_bytes = kNoLimit}});
  cluster.run(1, start);  // the first call of its shape measures the network
  const double roll_call =
      cluster.run(1, [](Communicator& member, int) { return member.barrier_async(); }).seconds;
  const SimulatedRun run = cluster.run(1, start);
  expect_no_errors(run);
  EXPECT_EQ(cluster.communicator(0).last_algorithm(), algorithm);
  return run.seconds - roll_call;
}

/// The formulas beside the algorithms. Roll calls and their summaries take some bytes of the links as well.
TEST(SimulatedTimes, AreThoseOfTheTextbook) {
  constexpr int kNodes = 16;
  constexpr double kRounds = 4;
  const NetworkModel network;
  const double alpha = network.latency_seconds;
  const auto bytes_take = [&](double bytes) { return bytes * network.seconds_per_byte; };
  const auto expect = [](double seconds, double expected) {
    EXPECT_NEAR(seconds, expected, 0.02 * expected);
  };

  constexpr std::int64_t kShort = 1100;  // more than piggybacks on the roll call
  const double short_bytes = kShort * sizeof(float);
  const Tensors short_tensors(kNodes, {kShort}, [](int) { return 1.0; });
  expect(seconds_after_roll_call(
             kNodes,
             [&](Communicator& member, int) { return member.broadcast_async(short_tensors.of(member), 0); },
             "two_level_binomial"),
         kRounds * (alpha + bytes_take(short_bytes)));
  // The first round is on the way during the roll call.
  expect(seconds_after_roll_call(
             kNodes,
             [&](Communicator& member, int) {
               return member.all_reduce_async(short_tensors.of(member), ReduceOp::kSum);
             },
             "two_level_recursive_doubling"),
         (kRounds - 1) * (alpha + bytes_take(short_bytes)));

  constexpr std::int64_t kLong = 1 << 18;
  const double long_bytes = kLong * sizeof(float);
  const Tensors long_tensors(kNodes, {kLong}, [](int) { return 1.0; });
  expect(seconds_after_roll_call(
             kNodes,
             [&](Communicator& member, int) { return member.broadcast_async(long_tensors.of(member), 0); },
             "two_level_halving_broadcast"),
         2 * kRounds * alpha + 2 * bytes_take(long_bytes) * (kNodes - 1) / kNodes);

  // Three nodes go round a ring, since halving would first fold one of them. The two rounds of the roll call
  // are on the way during the long first one of the ring.
  const Tensors in_ring(3, {kLong}, [](int) { return 1.0; });
  expect(seconds_after_roll_call(
             3,
             [&](Communicator& member, int) {
               return member.all_reduce_async(in_ring.of(member), ReduceOp::kSum);
             },
             "two_level_ring"),
         (4 - 2) * alpha + 2 * bytes_take(long_bytes) * 2 / 3);
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

// Thousands of jobs in which something goes wrong: none hangs, and each names who is guilty.

TEST(FaultSchedules, EndAndNameWhoIsGuilty) {
  for (std::uint64_t seed = 1; seed <= 10'000; ++seed) {
    const FaultSchedule schedule = fault_schedule(seed);
    EXPECT_EQ(problem_of(schedule), "") << "seed " << seed << ": " << schedule.describe();
  }
}

}  // namespace
}  // namespace cohort::simulation
