// Servers whose hosts are lost, and whose standbys take over: nothing that was acknowledged is missing, and
// every effect takes place once.
#include <sys/wait.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/train/optimizers/adam.h>

#include "counters.h"
#include "server/client/connections.h"
#include "server/serving/protocol.h"
#include "standby_job.h"

namespace cohort {
namespace {

using test::counter;
using test::Reach;
using test::StandbyJob;
using test::value;

void add_one(const Variable& variable) { variable.assign_add(1); }

void add_to_all(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) variable.assign_add(1);
}

bool ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

/// Calls `disturb` when some of the calls have ended.
template <class Disturb>
void run_calls(const ClusterCoordinator& coordinator, const std::vector<Variable>& variables, int calls,
               std::mt19937& random, Disturb disturb) {
  std::vector<RemoteValue<void>> scheduled;
  while (std::ssize(scheduled) < calls) scheduled.push_back(coordinator.schedule<add_to_all>(variables));
  scheduled[random() % scheduled.size()].get();
  disturb();
  coordinator.join();
}

class Standbys : public testing::TestWithParam<int> {};

TEST_P(Standbys, TakeOverInTheMiddleOfCommits) {
  constexpr int kRounds = 4;
  constexpr int kCalls = 400;
  const int servers = GetParam();
  for (int round = 0; round < kRounds; ++round) {
    const auto seed = std::random_device{}();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    StandbyJob job(2, servers, round % 2 == 0 ? Reach::kNode : Reach::kNetwork);
    const ParameterServerStrategy strategy(job.chief());
    const ClusterCoordinator coordinator(strategy);
    auto scope = strategy.scope();
    std::vector<Variable> variables;
    variables.reserve(static_cast<std::size_t>(servers));
    for (int i = 0; i < servers; ++i) variables.push_back(counter(fmt::format("v{}", i)));
    for (int i = 0; i < servers; ++i) job.wait_until_complete(i);
    run_calls(coordinator, variables, kCalls, random, [&] {
      EXPECT_TRUE(job.lose_host_of(static_cast<int>(random() % static_cast<unsigned>(servers))));
    });
    for (const Variable& variable : variables) EXPECT_EQ(value(variable), kCalls) << variable.name();
  }
}
INSTANTIATE_TEST_SUITE_P(Servers, Standbys, testing::Values(1, 2, 3));

TEST(Standby, MayBeLostAtAnyTime) {
  constexpr int kCalls = 2000;
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  StandbyJob job(2, 1);
  const ParameterServerStrategy strategy(job.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable variable = counter("v");
  const Variable large({.shape = {1 << 20}, .name = "large"});  // whose copy takes a while
  std::vector<RemoteValue<void>> calls;
  while (calls.size() < kCalls) calls.push_back(coordinator.schedule<add_one>(variable));
  for (int part = 0; part < 10; ++part) {
    calls[random() % calls.size()].get();
    if (random() % 2 == 0) job.wait_until_complete(0);
    if (random() % 3 == 0)
      job.restart_server(0);
    else
      job.restart_standby(0);
  }
  coordinator.join();
  // What the supervisor knows may be older than the last loss; a change that is answered is not.
  do {
    job.wait_until_complete(0);
    variable.assign_add(0);
  } while (!job.is_complete(0));
  EXPECT_TRUE(job.lose_host_of(0));
  EXPECT_EQ(value(variable), kCalls);
}

TEST(Standby, ThatFallsSilentDoesNotStopTheJob) {
  StandbyJob job(0, 1);
  const ParameterServerStrategy strategy(job.chief());
  auto scope = strategy.scope();
  const Variable variable = counter("v");
  job.wait_until_complete(0);
  job.stop_standby(0);
  variable.assign_add(1);
  EXPECT_FALSE(job.is_complete(0)) << "the answer came without the standby's";
  job.continue_standby(0);
  job.wait_until_complete(0);
  EXPECT_TRUE(job.lose_host_of(0));
  EXPECT_EQ(value(variable), 1);
}

TEST(Standby, EndsTheServerThatItHasTakenOverFrom) {
  constexpr int kCalls = 400;
  StandbyJob job(2, 1);
  const ParameterServerStrategy strategy(job.chief());
  const ClusterCoordinator coordinator(strategy);
  auto scope = strategy.scope();
  const Variable variable = counter("v");
  job.wait_until_complete(0);
  std::mt19937 random(std::random_device{}());
  run_calls(coordinator, {variable}, kCalls, random, [&] {
    job.take_over(0);
    EXPECT_FALSE(ended_well(job.wait_for_server(0)));
    job.close_listeners_of(0);
  });
  EXPECT_EQ(value(variable), kCalls);
}

TEST(Standby, GoesOnThoughTheServerWasNotToldAndItsSupervisorIsStopped) {
  StandbyJob job(0, 1, Reach::kNetwork);
  const ParameterServerStrategy strategy(job.chief());
  auto scope = strategy.scope();
  const Variable variable = counter("v");
  job.wait_until_complete(0);
  job.stop_supervisor();
  job.stop_standby(0);
  std::thread writer([&] { variable.assign_add(1); });
  EXPECT_FALSE(ended_well(job.wait_for_server(0))) << "it has not lost its standby, or waits for ever";
  job.close_listeners_of(0);
  job.take_over(0);
  job.continue_standby(0);
  writer.join();
  EXPECT_EQ(value(variable), 1);
}

TEST(Standby, HasTheSameBits) {
  const auto train = [](bool lose_host, Reach reach) {
    StandbyJob job(0, 1, reach);
    const ParameterServerStrategy strategy(job.chief());
    auto scope = strategy.scope();
    const Variable dense({.shape = {300, 1000}, .name = "dense"});
    const Variable table({.shape = {1000, 16}, .name = "table"});
    Adam adam({.learning_rate = 0.1});
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto drawn = [&](const Shape& shape) {
      Tensor tensor = Tensor::uninitialized(shape, DType::kFloat32);
      for (float& element : tensor.span<float>()) element = normal(random);
      return tensor;
    };
    const auto step = [&] {
      const Tensor rows = Tensor::from(std::vector<std::int64_t>{3, 700, 3, 41});
      const IndexedSlices sparse{drawn({4, 16}), rows, table.shape()};
      const Tensor gradient = drawn({300, 1000});
      strategy.run([&] { adam.apply_sparse_gradients({{sparse, table}}, {{gradient, dense}}); });
    };
    step();
    job.wait_until_complete(0);
    job.restart_standby(0);  // the copy has slots then
    job.wait_until_complete(0);
    for (int i = 0; i < 3; ++i) step();
    EXPECT_TRUE(!lose_host || job.lose_host_of(0));
    for (int i = 0; i < 3; ++i) step();
    std::vector<std::byte> bytes;
    for (const Variable& variable : {dense, table}) {
      const Tensor value = variable.read();
      bytes.insert(bytes.end(), value.raw().begin(), value.raw().end());
    }
    return bytes;
  };
  const std::vector<std::byte> expected = train(false, Reach::kNode);
  EXPECT_TRUE(train(true, Reach::kNode) == expected);
  EXPECT_TRUE(train(true, Reach::kNetwork) == expected);
}

TEST(Standby, HasWhatWasPreparedAndWhoHasLeft) {
  using namespace server;
  StandbyJob job(0, 1);
  Connections chief(job.chief());
  Encoder creation;
  creation.number(std::uint64_t{0});
  creation.text("v");
  creation.number(DType::kInt64);
  creation.shape({});
  creation.number(true);
  creation.tensor(Tensor::scalar(std::int64_t{40}));
  chief.ask({0, MessageKind::kCreate, creation.take()});
  const auto prepare = [&](const Execution& execution) {
    const Write write{0, WriteKind::kAssignAdd, Tensor::scalar(std::int64_t{1})};
    chief.ask({0, MessageKind::kPrepare, to_bytes(CommitMessage{execution, 0, {write}, {}})});
  };
  const auto finish = [&](const Execution& execution) {
    Encoder encoder;
    encoder.number(execution);
    return Decoder(chief.ask({0, MessageKind::kFinish, encoder.take()})).number<FinishAnswer>();
  };
  prepare({7, 1});
  job.wait_until_complete(0);
  job.restart_standby(0);
  job.wait_until_complete(0);
  prepare({7, 2});
  Encoder incarnation;
  incarnation.number(std::uint64_t{8});
  chief.ask({0, MessageKind::kFence, incarnation.take()});
  chief.take_leave(MessageKind::kGoodbye);
  ASSERT_TRUE(job.lose_host_of(0));
  EXPECT_EQ(finish({7, 1}), FinishAnswer::kMade) << "it was prepared before the copy";
  EXPECT_EQ(finish({7, 2}), FinishAnswer::kMade) << "it was prepared after it";
  EXPECT_THROW(prepare({8, 1}), Aborted);
  Connections worker(job.first_worker());
  worker.take_leave(MessageKind::kGoodbye);
  EXPECT_TRUE(ended_well(job.wait_for_standby(0))) << "all have said goodbye";
}

TEST(Standby, EndsWithTheJob) {
  StandbyJob job(1, 2);
  {
    const ParameterServerStrategy strategy(job.chief());
    const ClusterCoordinator coordinator(strategy);
    auto scope = strategy.scope();
    const Variable variable = counter("v");
    coordinator.schedule<add_one>(variable);
    coordinator.join();
    for (int i = 0; i < 2; ++i) job.wait_until_complete(i);
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(ended_well(job.wait_for_server(i)));
    EXPECT_TRUE(ended_well(job.wait_for_standby(i)));
  }
}

}  // namespace
}  // namespace cohort
