// Several workers, which are ranks, with several devices each. LOCAL_DEVICES says how many.
#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "rank_values.h"
#include "thrown.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int devices() {
  const char* text = std::getenv("LOCAL_DEVICES");
  return text == nullptr ? 2 : std::atoi(text);
}

TEST(WorkerDevices, AreNumberedWorkerByWorker) { check_numbering(session(), devices()); }
TEST(WorkerDevices, Reduce) { check_reduce(session(), devices()); }
TEST(WorkerDevices, ReduceAlongAnAxis) { check_reduce_along_an_axis(session(), devices()); }
TEST(WorkerDevices, ReduceBatches) { check_batch_reduce_to(session(), devices()); }
TEST(WorkerDevices, ReduceSlices) { check_slices(session(), devices()); }
TEST(WorkerDevices, Gather) { check_gather(session(), devices()); }
TEST(WorkerDevices, CommunicateInsideReplicas) { check_collectives_in_replicas(session(), devices()); }
TEST(WorkerDevices, Merge) { check_merge_call(session(), devices()); }
TEST(WorkerDevices, Train) { check_optimizers(session(), devices()); }
TEST(WorkerDevices, ShareTheInput) { check_input(session(), devices()); }

TEST(WorkerDevices, MakeVariables) { check_creation(session(), devices()); }
TEST(WorkerDevices, KeepVariablesEqualOnWrite) { check_on_write_variables(session(), devices()); }
TEST(WorkerDevices, AggregateVariablesOnRead) { check_on_read_variables(session(), devices()); }
TEST(WorkerDevices, ChangeRowsOfVariables) { check_rows(session(), devices()); }
TEST(WorkerDevices, UpdateVariables) { check_updates(session(), devices()); }

TEST(WorkerDevices, AreReleasedWhenAReplicaFails) { check_failing_replica(session(), devices()); }
TEST(WorkerDevices, AreReleasedWhenAMergeFails) { check_failing_merge(session(), devices()); }
TEST(WorkerDevices, WaitAsLongAsACallWants) { check_deadline_of_a_call(session(), devices()); }
TEST(WorkerDevices, AreToldOfAWorkerThatIsAhead) { check_worker_ahead(session(), devices()); }
TEST(WorkerDevices, AreToldWhoCouldNotMakeACollective) { check_unmade_collective(session(), devices()); }
TEST(WorkerDevices, OfOneWorkerMayDifferWithoutAHang) { check_replicas_that_differ(session(), devices()); }

TEST(WorkerDevices, AreAsManyOnEveryWorker) {
  const int odd = session().size() - 1;
  const int own = devices() + (session().rank() == odd ? 1 : 0);
  const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
    return MultiWorkerMirroredStrategy(session(), {.timeout_seconds = 20}, cpu_devices(own));
  });
  const WorkerInfo& named = session().workers()[static_cast<std::size_t>(odd)];
  EXPECT_THAT(text, AllOf(HasSubstr(describe(named)), HasSubstr(std::to_string(devices() + 1) + " members")));
  EXPECT_THAT(session().exchange(text), ::testing::Each(text));
  check_reduce(session(), devices());
}

}  // namespace
}  // namespace cohort::testing
