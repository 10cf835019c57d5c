// The variables are those that srun set on a real cluster.
#include <cohort/resolvers/slurm_cluster_resolver.h>

#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

#include "../strategy/fake_cluster.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// `srun -N 2 -n 3`: two tasks on n0, one on n1.
Environment step(const char* rank) {
  return {{"SLURM_PROCID", rank},
          {"SLURM_STEP_NUM_TASKS", "3"},
          {"SLURM_STEP_NODELIST", "n[0-1]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2,1"}};
}

auto resolving(const SlurmOptions& options, const Environment& variables) {
  return [=] { return SlurmClusterResolver(options, variables); };
}

TEST(SlurmClusterResolver, MakesEveryTaskAWorker) {
  const SlurmClusterResolver resolver({}, step("1"));
  EXPECT_EQ(resolver.cluster_spec(), (ClusterSpec{{"worker", {"n0:8888", "n0:8889", "n1:8888"}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "grpc://n0:8889");
}

TEST(SlurmClusterResolver, DealsTasksToJobsByName) {
  const SlurmOptions options{.jobs = {{"worker", 2}, {"chief", 1}}, .port_base = 9000, .rpc_layer = ""};
  const SlurmClusterResolver resolver(options, step("2"));
  EXPECT_EQ(resolver.cluster_spec(),
            (ClusterSpec{{"chief", {"n0:9000"}}, {"worker", {"n0:9001", "n1:9000"}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "n1:9000");
}

TEST(SlurmClusterResolver, SharesANodesGpusAmongItsTasks) {
  Environment variables = step("1");
  variables["CUDA_VISIBLE_DEVICES"] = "0,1,2,3";
  ::setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
  EXPECT_EQ(SlurmClusterResolver({.auto_set_gpu = false}, variables).own_gpus(), "2,3");
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "0,1,2,3");
  const SlurmClusterResolver resolver({}, variables);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "2,3");
  EXPECT_EQ(resolver.num_accelerators().at("GPU"), 2);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

/// The GPUs of a task that has these variables besides those of `step`.
std::string own_gpus(const char* rank, const Environment& variables, const SlurmOptions& options = {}) {
  Environment all = step(rank);
  all.insert(variables.begin(), variables.end());
  SlurmOptions alone = options;
  alone.auto_set_gpu = false;
  return SlurmClusterResolver(alone, all).own_gpus();
}

TEST(SlurmClusterResolver, TakesGpusFromTheList) {
  EXPECT_EQ(own_gpus("1", {{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}}), "6,7");
  EXPECT_EQ(own_gpus("0", {{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}}), "GPU-a");
  EXPECT_EQ(own_gpus("1", {{"SLURM_GPUS_ON_NODE", "4"}}), "2,3");
}

TEST(SlurmClusterResolver, LeavesWhatSlurmGaveToTheTask) {
  const Environment per_task{
      {"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_GPUS_ON_NODE", "2"}, {"CUDA_VISIBLE_DEVICES", "1"}};
  EXPECT_EQ(own_gpus("1", per_task), "1");
  EXPECT_EQ(own_gpus("1", per_task, {.gpus_per_node = 4}), "2,3");
  // The only task of a node, in a step with two on another.
  EXPECT_EQ(own_gpus("2", {{"SLURM_GPUS_PER_TASK", "volta:1,kepler:1"},
                           {"SLURM_GPUS_ON_NODE", "2"},
                           {"CUDA_VISIBLE_DEVICES", "0,1"}}),
            "0,1");
  // --gpu-bind alone
  EXPECT_EQ(own_gpus("0", {{"SLURM_GPUS_ON_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "3"}}), "3");
  // --gpu-bind=none
  EXPECT_EQ(
      own_gpus("1",
               {{"SLURM_GPUS_PER_TASK", "1"}, {"SLURM_GPUS_ON_NODE", "2"}, {"CUDA_VISIBLE_DEVICES", "0,1"}}),
      "1");
  EXPECT_EQ(own_gpus("1", {{"SLURM_GPUS_PER_TASK", "many"}, {"CUDA_VISIBLE_DEVICES", "0,1"}}), "1");
}

TEST(SlurmClusterResolver, TakesNoGpuFromTasksThatShareOne) {
  Environment variables = step("1");
  variables["CUDA_VISIBLE_DEVICES"] = "0";
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  EXPECT_EQ(SlurmClusterResolver({}, variables).num_accelerators().at("GPU"), 0);
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "0");
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(SlurmClusterResolver, DoesWithoutGpus) {
  EXPECT_EQ(SlurmClusterResolver({}, step("0")).num_accelerators().at("GPU"), 0);
  EXPECT_EQ(std::getenv("CUDA_VISIBLE_DEVICES"), nullptr);
}

TEST(SlurmClusterResolver, RefusesMoreGpusThanThereAre) {
  EXPECT_THAT(resolving({.gpus_per_node = 3, .gpus_per_task = 2}, step("0")),
              ThrowsMessage<InvalidArgument>(HasSubstr("2 tasks per node with 2 GPUs each need 4 GPUs")));
}

TEST(SlurmClusterResolver, NamesTheVariableThatIsMissing) {
  for (const char* name :
       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"}) {
    Environment variables = step("0");
    variables.erase(name);
    EXPECT_THAT(resolving({}, variables),
                ThrowsMessage<Unavailable>(AllOf(HasSubstr(name), HasSubstr("srun"))));
  }
}

TEST(SlurmClusterResolver, NamesTheVariableThatIsMalformed) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"}) {
    Environment variables = step("0");
    variables[name] = "3[1-";
    EXPECT_THAT(resolving({}, variables),
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(name), HasSubstr("at character"))));
  }
}

TEST(SlurmClusterResolver, SaysWhatContradictsWhat) {
  EXPECT_THAT(resolving({.jobs = {{"worker", 2}}}, step("0")),
              ThrowsMessage<InvalidArgument>(HasSubstr("2 tasks together, but the job step has 3")));
  EXPECT_THAT(resolving({}, step("3")), ThrowsMessage<InvalidArgument>(HasSubstr("SLURM_PROCID is 3")));
  EXPECT_THAT(resolving({}, step("x")), ThrowsMessage<InvalidArgument>(HasSubstr("SLURM_PROCID is 'x'")));
  Environment variables = step("0");
  variables["SLURM_STEP_TASKS_PER_NODE"] = "1(x3)";
  EXPECT_THAT(resolving({}, variables), ThrowsMessage<InvalidArgument>(HasSubstr("2 hosts")));
  variables["SLURM_STEP_NODELIST"] = "n[2-3],n1,n3";
  EXPECT_THAT(resolving({}, variables),
              ThrowsMessage<InvalidArgument>(HasSubstr("SLURM_STEP_NODELIST names the host n3 twice")));
}

// Under mpirun in a batch job, the variables are those of the daemon on the node: one task, rank 0.
TEST(SlurmClusterResolver, TakesRanksFromMpiWhereThereIsASession) {
  const Environment daemon{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}};
  FakeCluster cluster(3);
  FakeWorker worker(cluster, 2);
  const SlurmClusterResolver resolver({.bootstrap = &worker}, daemon);
  EXPECT_EQ(resolver.cluster_spec().num_tasks("worker"), 3);
  EXPECT_EQ(resolver.task_id(), 2);
  EXPECT_EQ(resolver.bootstrap(), &worker);
}

}  // namespace
}  // namespace cohort::testing
