// MultiWorkerMirroredStrategy with workers that are threads: what the workers compute together, one replica
// each, and what comes of one that makes another collective.
#include <exception>
#include <functional>
#include <latch>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/value/variable.h>

#include "fake_cluster.h"
#include "strategies.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class MultiWorker : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int workers() { return GetParam(); }
  [[nodiscard]] static int last() { return GetParam() - 1; }
  [[nodiscard]] static double mean() { return (GetParam() + 1) / 2.0; }

  /// Calls `function(strategy, rank)` on every worker.
  template <class Function>
  static void on_every_worker(Function function, const CommunicationOptions& options = kPatient) {
    for_each_worker(workers(), [&](Bootstrap& worker) {
      function(MultiWorkerMirroredStrategy(worker, options), worker.rank());
    });
  }
};
COHORT_INSTANTIATE_REPLICAS(MultiWorker);

TEST_P(MultiWorker, NumbersItsReplicasOverAllWorkers) {
  on_every_worker([](const Strategy& strategy, int rank) {
    EXPECT_EQ(strategy.num_replicas_in_sync(), workers());
    const auto ids = strategy.run([&](ReplicaContext& replica) {
      EXPECT_EQ(replica.num_replicas_in_sync(), workers());
      EXPECT_EQ(replica.device(), Device::cpu(0));
      EXPECT_EQ(get_strategy(), strategy);
      return replica.replica_id_in_sync_group();
    });
    EXPECT_THAT(ids.components(), ElementsAre(rank)) << "each worker has its own replica only";
    EXPECT_THAT(strategy.local_results(ids), ElementsAre(rank));
  });
}

TEST_P(MultiWorker, ReducesOverAllWorkers) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const auto values = per_replica(strategy, [](int id) { return vector_of<double>({id + 1.0, 2.0}); });
    EXPECT_THAT(numbers(strategy.reduce(ReduceOp::kSum, values)),
                ElementsAre(sum_to(workers()), 2 * workers()));
    EXPECT_THAT(numbers(strategy.reduce(ReduceOp::kMean, values)), ElementsAre(mean(), 2));
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, PerReplica(std::vector{rank})), sum_to(last()));
  });
}

TEST_P(MultiWorker, CountsAPlainValueOncePerWorker) {
  on_every_worker([](const Strategy& strategy, int rank) {
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, 5.0), 5.0 * workers());
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, Tensor::scalar(rank + 1.0)).item<double>(), sum_to(workers()));
    EXPECT_EQ(strategy.reduce(ReduceOp::kMean, rank + 1.0), mean());
  });
}

TEST_P(MultiWorker, WeighsUnevenBatchesByTheirElements) {
  on_every_worker([](const Strategy& strategy, int rank) {
    // Worker r has r elements, all of them r; worker 0 has none.
    const PerReplica batch(std::vector{vector_of(std::vector<double>(static_cast<std::size_t>(rank), rank))});
    double sum = 0;
    for (int r = 0; r < workers(); ++r) sum += r * r;
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, batch, 0).item<double>(), sum);
    const Tensor average = strategy.reduce(ReduceOp::kMean, batch, 0);
    if (workers() == 1) return;  // the mean of nothing is nothing
    EXPECT_EQ(average.item<double>(), sum / sum_to(last()));
  });
}

TEST_P(MultiWorker, GathersUnevenParts) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const PerReplica mine(std::vector{Tensor::full({rank, 2}, DType::kInt32, rank)});
    const Tensor all = strategy.gather(mine, 0);
    ASSERT_EQ(all.shape(), (Shape{sum_to(last()), 2}));
    int row = 0;
    for (int r = 0; r < workers(); ++r) {
      for (int i = 0; i < r; ++i) EXPECT_THAT(numbers(all.row(row++)), Each(r));
    }
    const PerReplica column(std::vector{Tensor::full({2, 1}, DType::kInt32, rank)});
    EXPECT_EQ(strategy.gather(column, -1).shape(), (Shape{2, workers()}));
  });
}

TEST_P(MultiWorker, CommunicatesInsideReplicas) {
  on_every_worker([](const Strategy& strategy, int rank) {
    strategy.run([&](ReplicaContext& replica) {
      EXPECT_EQ(replica.all_reduce(ReduceOp::kSum, rank + 1), sum_to(workers()));
      EXPECT_EQ(replica.all_gather(Tensor::from({rank}), 0).shape(), Shape{workers()});
      const double merged = replica.merge_call(
          [](const Strategy& merging, const PerReplica<double>& mine) {
            EXPECT_THAT(mine.components(), SizeIs(1)) << "a merge is of this worker's replicas";
            return merging.reduce(ReduceOp::kSum, mine);
          },
          rank + 1.0);
      EXPECT_EQ(merged, sum_to(workers()));
    });
  });
}

TEST_P(MultiWorker, StartsVariablesWithTheChiefsValue) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const auto scope = strategy.scope();
    const Variable variable({.initial_value = vector_of<double>({rank + 5.0, -1.0 * rank})});
    EXPECT_THAT(numbers(variable.read()), ElementsAre(5, 0));
    EXPECT_THAT(variable.components(), SizeIs(1));
  });
}

TEST_P(MultiWorker, MakesVariablesAlsoInsideItsReplica) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const auto variables =
        strategy.run([&] { return Variable({.initial_value = Tensor::scalar(rank + 5.0)}); });
    EXPECT_EQ(variables[0].read().item<double>(), 5);
  });
}

TEST_P(MultiWorker, AggregatesWhatReplicasAssign) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const auto assigned = [&](VariableAggregation aggregation) {
      const auto scope = strategy.scope();
      const Variable variable({.initial_value = Tensor::scalar(10.0), .aggregation = aggregation});
      strategy.run([&] { variable.assign(rank + 1.0); });
      return variable.read().item<double>();
    };
    EXPECT_EQ(assigned(VariableAggregation::kNone), rank + 1);
    EXPECT_EQ(assigned(VariableAggregation::kSum), sum_to(workers()));
    EXPECT_EQ(assigned(VariableAggregation::kMean), mean());
    EXPECT_EQ(assigned(VariableAggregation::kOnlyFirstReplica), 1)
        << "replica 0 of all workers, not of this one";
  });
}

TEST_P(MultiWorker, KeepsItsStrategiesApart) {
  for_each_worker(workers(), [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy first(worker, kPatient);
    const MultiWorkerMirroredStrategy second(worker, kPatient);
    EXPECT_EQ(first.reduce(ReduceOp::kSum, 1.0) + second.reduce(ReduceOp::kSum, 2.0), 3.0 * workers());
  });
}

class SeveralWorkers : public MultiWorker {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(SeveralWorkers);

TEST_P(SeveralWorkers, AreToldWhoseValueDiffers) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const Tensor mine = Tensor::zeros({rank == last() ? 3 : 2}, DType::kFloat32);
    // Members that are threads of one process are all of worker 0; the numbers of workers are compared where
    // workers are ranks.
    const auto odd = ThrowsMessage<InvalidArgument>(
        AllOf(HasSubstr("reduces (sum) float32[3]"), HasSubstr("reduces (sum) float32[2]")));
    EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, mine); }, odd);
    EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, 1.0); }, odd) << "the group is of no more use";
  });
}

TEST_P(SeveralWorkers, AreToldWhoGathersAlongAnotherAxis) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const PerReplica square(std::vector{Tensor::zeros({2, 2}, DType::kFloat32)});
    EXPECT_THAT([&] { static_cast<void>(strategy.gather(square, rank == last() ? 1 : 0)); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("gathers float32[2, 2] along axis 0"),
                                                     HasSubstr("gathers float32[2, 2] along axis 1"))));
  });
}

TEST_P(SeveralWorkers, AreToldWhoseRowsDiffer) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const PerReplica mine(
        std::vector{Tensor::zeros(rank == last() ? Shape{1, 3, 2} : Shape{1, 2, 3}, DType::kFloat32)});
    EXPECT_THAT(
        [&] { return strategy.reduce(ReduceOp::kMean, mine, 0); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("reduces (mean) float32[1, 2, 3] along axis 0"),
                                             HasSubstr("reduces (mean) float32[1, 3, 2] along axis 0"))));
  });
}

/// The last worker's call fails before it communicates; its next one must not pass for the one that the
/// others still make.
TEST_P(SeveralWorkers, AreToldWhoCouldNotMakeACall) {
  const PerReplica one(std::vector{Tensor::from({1.0})});
  const PerReplica foreign(std::vector(2, Tensor::from({1.0})));
  const auto check = [&](const char* text, const std::function<void(const Strategy&)>& fails) {
    on_every_worker([&](const Strategy& strategy, int rank) {
      if (rank == last()) {
        EXPECT_THAT([&] { fails(strategy); }, ThrowsMessage<InvalidArgument>(HasSubstr(text)));
      }
      EXPECT_THAT([&] { static_cast<void>(strategy.reduce(ReduceOp::kSum, one)); },
                  ThrowsMessage<Aborted>(AllOf(ContainsRegex("(worker|replica) " + std::to_string(last()) +
                                                             " \\(.*host .+\\) failed first"),
                                               HasSubstr(text))));
    });
  };
  check("sum of bool is not defined", [](const Strategy& strategy) {
    static_cast<void>(strategy.reduce(ReduceOp::kSum, Tensor::from({true})));
  });
  check("sum of bool is not defined", [](const Strategy& strategy) {
    static_cast<void>(strategy.reduce(ReduceOp::kSum, Tensor::from({true}), 0));
  });
  check("belongs to another strategy",
        [&](const Strategy& strategy) { static_cast<void>(strategy.reduce(ReduceOp::kSum, foreign)); });
  check("belongs to another strategy",
        [&](const Strategy& strategy) { static_cast<void>(strategy.gather(foreign, 0)); });
  check("belongs to another strategy", [&](const Strategy& strategy) {
    static_cast<void>(strategy.reduce(ReduceOp::kSum, std::vector{foreign}));
  });
  check("2 values for 1 local replicas",
        [&](const Strategy& strategy) { static_cast<void>(strategy.reduce(ReduceOp::kSum, foreign, 0)); });
  check("axis 3 is out of range",
        [&](const Strategy& strategy) { static_cast<void>(strategy.gather(one, 3)); });
  check("timeout_seconds", [&](const Strategy& strategy) {
    static_cast<void>(strategy.extended().reduce_to(ReduceOp::kSum, one, "cpu:0", {.timeout_seconds = -1}));
  });
  const auto check_making = [&](const char* text, const VariableOptions& options) {
    check(text, [&](const Strategy& strategy) {
      const auto scope = strategy.scope();
      static_cast<void>(Variable(options));
    });
    check(text, [&](const Strategy& strategy) {
      std::exception_ptr handled;
      strategy.run([&] {
        try {
          static_cast<void>(Variable(options));
        } catch (const Error&) {
          handled = std::current_exception();
        }
      });
      if (handled != nullptr) std::rethrow_exception(handled);
    });
  };
  check_making("the mean aggregation needs a floating dtype",
               {.dtype = DType::kInt32, .aggregation = VariableAggregation::kMean});
  check_making("which synchronization none does not allow",
               {.synchronization = VariableSynchronization::kNone});
  check_making("contradicts the initial value", {.shape = {2}, .initial_value = Tensor::from({1.0})});
  check_making("names 2 devices", {.devices = {Device::cpu(0), Device::cpu(0)}});
}

TEST_P(SeveralWorkers, AreToldWhoMakesAnotherVariable) {
  const auto check = [](const VariableOptions& usual, const VariableOptions& odd) {
    on_every_worker([&](const Strategy& strategy, int rank) {
      const auto making = [&] {
        const auto scope = strategy.scope();
        const Variable variable(rank == last() ? odd : usual);
      };
      EXPECT_THAT(making, ThrowsMessage<InvalidArgument>(
                              AllOf(HasSubstr("makes variable " + usual.name + " ("),
                                    HasSubstr("makes variable " + odd.name + " ("), HasSubstr("(host "))));
    });
  };
  check({.name = "a"}, {.name = "b", .aggregation = VariableAggregation::kSum});
  check({.name = "a"}, {.name = "a", .synchronization = VariableSynchronization::kOnRead});
  check({.name = "a"}, {.dtype = DType::kFloat64, .name = "a"});
  check({.name = "a"}, {.name = "b"});
  check({.shape = {2, 3}, .name = "a"}, {.shape = {3, 2}, .name = "a"});
  on_every_worker([&](const Strategy& strategy, int rank) {
    const auto scope = strategy.scope();
    const VariableOptions options{.name = "a", .name_may_differ = rank == last()};
    EXPECT_THAT([&] { static_cast<void>(Variable(options)); },
                ThrowsMessage<InvalidArgument>(
                    AllOf(HasSubstr("aggregation none)"), HasSubstr("aggregation none, name_may_differ)"))));
  });
}

TEST_P(SeveralWorkers, MayNameTheirVariablesDifferentlyIfTheySaySo) {
  on_every_worker([](const Strategy& strategy, int rank) {
    const auto scope = strategy.scope();
    const Variable variable({.name = "of worker " + std::to_string(rank), .name_may_differ = true});
    EXPECT_EQ(variable.name(), "of worker " + std::to_string(rank));
  });
}

TEST_P(SeveralWorkers, AreToldWhoIsMissing) {
  std::latch others(workers() - 1);
  on_every_worker(
      [&](const Strategy& strategy, int rank) {
        if (rank == last()) return others.wait();
        // Members that are threads of one process are all of worker 0.
        EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, 1.0); },
                    ThrowsMessage<DeadlineExceeded>(names_missing(0, "worker")));
        others.count_down();
      },
      kImpatient);
}

TEST_P(SeveralWorkers, AreToldAtOnceWhoLeft) {
  on_every_worker([](const Strategy& strategy, int rank) {
    if (rank == last()) return;
    EXPECT_THAT(
        [&] { return strategy.reduce(ReduceOp::kSum, 1.0); },
        ThrowsMessage<Aborted>(HasSubstr("left the communicator without making this call: worker 0 (host ")));
  });
}

TEST_P(SeveralWorkers, SeeTheExceptionOfTheirOwnReplica) {
  on_every_worker([](const Strategy& strategy, int rank) {
    EXPECT_THAT([&] { strategy.run([&] { throw std::out_of_range("worker " + std::to_string(rank)); }); },
                ThrowsMessage<std::out_of_range>("worker " + std::to_string(rank)));
    if (workers() == 1) return;
    // Nobody knows any more whether the others are in the same step.
    EXPECT_THAT([&] { return strategy.reduce(ReduceOp::kSum, 1.0); },
                ThrowsMessage<Aborted>(HasSubstr("failed first: worker")));
  });
}

/// The last worker's replica throws `failure` while the others wait for it.
template <class Failure>
void expect_release(const Strategy& strategy, int rank, bool fails, const Failure& failure,
                    const char* text) {
  const auto step = [&](ReplicaContext& replica) {
    if (fails) throw failure;
    return replica.all_reduce(ReduceOp::kSum, 1.0);
  };
  if (fails) {
    EXPECT_THROW(strategy.run(step), Failure) << rank;
  } else {
    EXPECT_THAT([&] { return strategy.run(step); },
                ThrowsMessage<Aborted>(AllOf(HasSubstr("failed first"), HasSubstr(text))))
        << rank;
  }
}

TEST_P(SeveralWorkers, AreReleasedWhenAReplicaOfAnotherOneFails) {
  on_every_worker([](const Strategy& strategy, int rank) {
    expect_release(strategy, rank, rank == last(), std::out_of_range("no such row"), "no such row");
  });
  on_every_worker([](const Strategy& strategy, int rank) {
    expect_release(strategy, rank, rank == last(), 42, "not a std::exception");
  });
}

TEST(FakeCluster, ExchangesBlobs) {
  for_each_worker(3, [](Bootstrap& worker) {
    EXPECT_THAT(worker.exchange(std::string(static_cast<std::size_t>(worker.rank()), 'x')),
                ElementsAre("", "x", "xx"));
    EXPECT_THAT(worker.exchange(std::to_string(worker.rank())), ElementsAre("0", "1", "2"));
  });
}

// Replicas, and workers that are threads, of which one makes another collective than the others.

TEST(Identity, OfEveryCollectiveIsComparedAmongReplicas) {
  for (const int replicas : {2, 3}) check_odd_replicas(replicas);
}

class IdentityOfWorkers : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    const auto [workers, devices] = GetParam();
    for_each_worker(workers, [check, devices = devices](Bootstrap& worker) { check(worker, devices); });
  }
};
INSTANTIATE_TEST_SUITE_P(WorkersAndDevices, IdentityOfWorkers,
                         ::testing::Values(std::pair(2, 1), std::pair(3, 1), std::pair(2, 2)));

TEST_P(IdentityOfWorkers, OfEveryCollectiveIsCompared) {
  on_every_worker([](Bootstrap& worker, int devices) {
    check_odd_workers(worker, devices, {.every = devices == 1 ? 1 : 5});
  });
}
TEST_P(IdentityOfWorkers, OfVariablesHasTheirNames) { on_every_worker(check_variable_names); }
TEST_P(IdentityOfWorkers, OfDatasetsIsCompared) { on_every_worker(check_odd_datasets); }

// The classic mistake: the chief reads what only all can read, for example to log it.
TEST(LoneReader, IsToldWhatItWaitsFor) {
  for_each_worker(2, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    const auto scope = strategy.scope();
    const Variable accuracy({.name = "accuracy",
                             .synchronization = VariableSynchronization::kOnRead,
                             .aggregation = VariableAggregation::kMean});
    if (worker.rank() == 0) {
      EXPECT_THAT([&] { return accuracy.read(); },
                  ::testing::ThrowsMessage<Aborted>(
                      ::testing::AllOf(::testing::HasSubstr("which reads accuracy, for members that left"),
                                       ::testing::HasSubstr("without making this call: worker "))));
    }
  });
}

TEST(ValueOfAWorker, IsNoOperandOutsideReplicas) {
  for_each_worker(2, [](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60});
    const auto losses = strategy.run([] { return 1.0F; });
    EXPECT_THROW(static_cast<void>(losses + 1.0F), WrongContext);
    EXPECT_EQ(strategy.reduce(ReduceOp::kSum, losses), 2.0F);
  });
}

}  // namespace
}  // namespace cohort::testing
