// The variables are those that srun set on a real cluster.

#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/resolvers/slurm_cluster_resolver.h>

#include "../strategy/fake_cluster.h"
#include "resolvers/list_notations.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
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

// Lists as Slurm prints them, and malformed ones.

auto hosts(std::string_view list) {
  return [list] { return expand_host_list(list); };
}
auto tasks(std::string_view list) {
  return [list] { return expand_tasks_per_node(list); };
}

TEST(HostList, ExpandsRangesInOrder) {
  EXPECT_THAT(expand_host_list("n[1-2],m5,o[3-4,6,7-9]"),
              ElementsAre("n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"));
  EXPECT_THAT(expand_host_list("b,a,b"), ElementsAre("b", "a", "b"));
  EXPECT_THAT(expand_host_list(""), IsEmpty());
  EXPECT_THAT(expand_host_list("n[1-2],"), ElementsAre("n1", "n2"));
}

TEST(HostList, KeepsZeros) {
  EXPECT_THAT(expand_host_list("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expand_host_list("n[9-11]"), ElementsAre("n9", "n10", "n11"));
}

TEST(HostList, TakesNamesThatGoOnAfterABracket) {
  EXPECT_THAT(expand_host_list("a[1-2]b"), ElementsAre("a1b", "a2b"));
  EXPECT_THAT(expand_host_list("r[1-2]n[0,3]"), ElementsAre("r1n0", "r1n3", "r2n0", "r2n3"));
}

TEST(HostList, SaysWhereItIsWrong) {
  EXPECT_THAT(hosts("n[1-"),
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("character 5"), HasSubstr("a number is missing"), HasSubstr("n[1-"))));
  EXPECT_THAT(hosts("n[1-2"), ThrowsMessage<InvalidArgument>(HasSubstr("']' is missing")));
  EXPECT_THAT(hosts("n1-2]"), ThrowsMessage<InvalidArgument>(HasSubstr("']' has no '['")));
  EXPECT_THAT(hosts("n[3-1]"), ThrowsMessage<InvalidArgument>(HasSubstr("3-1 runs backwards")));
  EXPECT_THAT(hosts("n[a-b]"), ThrowsMessage<InvalidArgument>(HasSubstr("character 3")));
  EXPECT_THAT(hosts(",n1"), ThrowsMessage<InvalidArgument>(HasSubstr("a host name is missing")));
  EXPECT_THAT(hosts("n[1 -2]"), ThrowsMessage<InvalidArgument>(HasSubstr("character 4")));
  EXPECT_THAT(hosts("n1 ,n2"), ThrowsMessage<InvalidArgument>(HasSubstr("no spaces")));
}

TEST(HostList, RefusesMoreHostsThanThereAre) {
  EXPECT_THAT(expand_host_list("n[1-250000]"), SizeIs(250000));
  EXPECT_THAT(hosts("n[0-250000]"), ThrowsMessage<InvalidArgument>(HasSubstr("more than 250000")));
  EXPECT_THAT(hosts("n[0-999]m[0-999]k[0-9]"), ThrowsMessage<InvalidArgument>(HasSubstr("more than")));
  EXPECT_THAT(hosts("n[1-99999999999]"), ThrowsMessage<InvalidArgument>(HasSubstr("too large")));
}

TEST(HostList, RefusesNamesThatAreTooLong) {
  const std::string longest(253, 'n');
  const std::string longer = longest + "m";
  const std::string longer_by_bracket = longest + "[1-2]";
  EXPECT_THAT(expand_host_list(longest), SizeIs(1));
  EXPECT_THAT(hosts(longer), ThrowsMessage<InvalidArgument>(HasSubstr("at most 253")));
  EXPECT_THAT(hosts(longer_by_bracket), ThrowsMessage<InvalidArgument>(HasSubstr("at most 253")));
}

TEST(TasksPerNode, RepeatsWhatIsRepeated) {
  EXPECT_THAT(expand_tasks_per_node("3(x2),2,11(x4)"), ElementsAre(3, 3, 2, 11, 11, 11, 11));
  EXPECT_THAT(expand_tasks_per_node("1"), ElementsAre(1));
  EXPECT_THAT(expand_tasks_per_node("3(x0)"), IsEmpty());
}

TEST(TasksPerNode, SaysWhereItIsWrong) {
  EXPECT_THAT(tasks(""), ThrowsMessage<InvalidArgument>(HasSubstr("a number is missing")));
  EXPECT_THAT(tasks("a"), ThrowsMessage<InvalidArgument>(HasSubstr("character 1")));
  EXPECT_THAT(tasks("3x2"), ThrowsMessage<InvalidArgument>(HasSubstr("a comma is missing")));
  EXPECT_THAT(tasks("2(x2)2"), ThrowsMessage<InvalidArgument>(HasSubstr("character 6")));
  EXPECT_THAT(tasks("2(x"), ThrowsMessage<InvalidArgument>(HasSubstr("a number is missing")));
  EXPECT_THAT(tasks("1(x2000000)"), ThrowsMessage<InvalidArgument>(HasSubstr("more than")));
}

}  // namespace
}  // namespace cohort::testing
