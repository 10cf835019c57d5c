// Several workers, which are threads, with several devices each.
#include <gmock/gmock.h>

#include "../strategy/fake_cluster.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

struct Layout {
  int workers;
  int devices;
};

class WorkerDevices : public ::testing::TestWithParam<Layout> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap& worker, int devices)) {
    for_each_worker(GetParam().workers, [&](Bootstrap& worker) { check(worker, GetParam().devices); });
  }
};

std::string name_of(const ::testing::TestParamInfo<Layout>& info) {
  return std::to_string(info.param.workers) + "x" + std::to_string(info.param.devices);
}

INSTANTIATE_TEST_SUITE_P(Layouts, WorkerDevices,
                         ::testing::Values(Layout{1, 1}, Layout{1, 3}, Layout{2, 1}, Layout{2, 2},
                                           Layout{3, 2}, Layout{2, 3}, Layout{7, 3}),
                         name_of);

TEST_P(WorkerDevices, AreNumberedWorkerByWorker) { on_every_worker(check_numbering); }
TEST_P(WorkerDevices, Reduce) { on_every_worker(check_reduce); }
TEST_P(WorkerDevices, ReduceAlongAnAxis) { on_every_worker(check_reduce_along_an_axis); }
TEST_P(WorkerDevices, ReduceBatches) { on_every_worker(check_batch_reduce_to); }
TEST_P(WorkerDevices, ReduceSlices) { on_every_worker(check_slices); }
TEST_P(WorkerDevices, Gather) { on_every_worker(check_gather); }
TEST_P(WorkerDevices, CommunicateInsideReplicas) { on_every_worker(check_collectives_in_replicas); }
TEST_P(WorkerDevices, Merge) { on_every_worker(check_merge_call); }
TEST_P(WorkerDevices, Train) { on_every_worker(check_optimizers); }
TEST_P(WorkerDevices, ShareTheInput) { on_every_worker(check_input); }
TEST_P(WorkerDevices, AreReleasedWhenAReplicaFails) { on_every_worker(check_failing_replica); }
TEST_P(WorkerDevices, AreReleasedWhenAMergeFails) { on_every_worker(check_failing_merge); }
TEST_P(WorkerDevices, WaitAsLongAsACallWants) { on_every_worker(check_deadline_of_a_call); }
TEST_P(WorkerDevices, AreToldOfAWorkerThatIsAhead) { on_every_worker(check_worker_ahead); }
TEST_P(WorkerDevices, AreToldWhoCouldNotMakeACollective) { on_every_worker(check_unmade_collective); }

class SeveralDevices : public WorkerDevices {};
INSTANTIATE_TEST_SUITE_P(Layouts, SeveralDevices,
                         ::testing::Values(Layout{1, 3}, Layout{2, 2}, Layout{3, 2}, Layout{2, 3}), name_of);

TEST_P(SeveralDevices, OfOneWorkerMayDifferWithoutAHang) { on_every_worker(check_replicas_that_differ); }

}  // namespace
}  // namespace cohort::testing
