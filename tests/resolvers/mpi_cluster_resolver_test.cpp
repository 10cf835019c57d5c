// The resolver reads a Bootstrap; a cluster of threads stands in for MPI.
#include <cohort/resolvers/mpi_cluster_resolver.h>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

TEST(MpiClusterResolver, MakesEveryRankATaskOfTheJobWorker) {
  FakeCluster cluster(3);
  FakeWorker worker(cluster, 2);
  const MpiClusterResolver resolver(worker);
  const ClusterSpec spec = resolver.cluster_spec();
  EXPECT_THAT(spec.jobs(), ElementsAre("worker"));
  EXPECT_EQ(spec.num_tasks("worker"), 3);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(spec.task_address("worker", rank), "n0");
}

TEST(MpiClusterResolver, KnowsItsOwnTask) {
  FakeCluster cluster(3);
  for (int rank = 0; rank < 3; ++rank) {
    FakeWorker worker(cluster, rank);
    const MpiClusterResolver resolver(worker);
    EXPECT_EQ(resolver.task_type(), "worker");
    EXPECT_EQ(resolver.task_id(), rank);
    EXPECT_EQ(resolver.bootstrap(), &worker);
  }
}

TEST(MpiClusterResolver, IsAllThatAStrategyNeeds) {
  for (const int workers : {1, 2, 3}) {
    for_each_worker(workers, [&](Bootstrap& worker) {
      const MultiWorkerMirroredStrategy strategy(MpiClusterResolver(worker), {.timeout_seconds = 60});
      EXPECT_EQ(strategy.num_replicas_in_sync(), workers);
      EXPECT_EQ(strategy.reduce(ReduceOp::kSum, 1.0), workers);
    });
  }
}

}  // namespace
}  // namespace cohort::testing
