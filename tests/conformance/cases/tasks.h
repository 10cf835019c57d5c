// Cases of parameter servers: the test is the chief and the coordinator, and the workers and servers are
// processes of the same program. Each case runs with 1, 2 and 3 workers and as many servers each. The cases
// of a suite share one cluster per layout; one after a case that has failed gets a new one.
#pragma once

#include <memory>
#include <ostream>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/coordinator/cluster_coordinator.h>

#include "task_processes.h"

namespace cohort::testing {

struct TaskLayout {
  int workers = 1;
  int servers = 1;

  friend std::ostream& operator<<(std::ostream& stream, const TaskLayout& layout) {
    return stream << layout.workers << " workers, " << layout.servers << " servers";
  }
};

/// What the coordinator's program has. Sharded variables are cut into four.
struct CoordinatedTasks {
  explicit CoordinatedTasks(const TaskLayout& layout) : processes(layout.workers, layout.servers) {}

  test::TaskProcesses processes;
  ParameterServerStrategy strategy{processes.chief(), {.variable_partitioner = FixedShardsPartitioner(4)}};
  ClusterCoordinator coordinator{strategy};
};

class TaskCase : public ::testing::TestWithParam<TaskLayout> {
 protected:
  static void TearDownTestSuite() { tasks_.reset(); }
  void SetUp() override {
    if (tasks_ == nullptr) tasks_ = std::make_unique<CoordinatedTasks>(GetParam());
  }
  void TearDown() override {
    if (HasFailure()) tasks_.reset();
  }

  [[nodiscard]] static int workers() { return GetParam().workers; }
  [[nodiscard]] static int servers() { return GetParam().servers; }
  [[nodiscard]] static test::TaskProcesses& processes() { return tasks_->processes; }
  [[nodiscard]] static const ParameterServerStrategy& strategy() { return tasks_->strategy; }
  [[nodiscard]] static const ClusterCoordinator& coordinator() { return tasks_->coordinator; }

 private:
  inline static std::unique_ptr<CoordinatedTasks> tasks_;
};

/// Each layout is an instantiation of its own, so that the cases of one run together.
#define COHORT_INSTANTIATE_TASK_LAYOUT(Suite, kWorkers, kServers)       \
  INSTANTIATE_TEST_SUITE_P(Workers##kWorkers##Servers##kServers, Suite, \
                           ::testing::Values(TaskLayout{kWorkers, kServers}))
#define COHORT_INSTANTIATE_TASK_CASES(Suite)   \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 1, 1); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 1, 2); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 1, 3); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 2, 1); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 2, 2); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 2, 3); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 3, 1); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 3, 2); \
  COHORT_INSTANTIATE_TASK_LAYOUT(Suite, 3, 3)

}  // namespace cohort::testing
