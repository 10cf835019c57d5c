// What launchers say about a cluster, and the roles of its tasks. No strategy takes part.
#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_roles.h>
#include <cohort/resolvers/slurm_cluster_resolver.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>

#include "resolvers/list_notations.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(SlurmCase, Case109_ExpandsListsOfHosts) {
  EXPECT_THAT(expand_host_list("n[1-2],m5,o[3-4,6,7-9]"),
              ElementsAre("n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"));
  EXPECT_THAT(expand_host_list("n[0001-0003],m5,o[009-011]"),
              ElementsAre("n0001", "n0002", "n0003", "m5", "o009", "o010", "o011"));
}

TEST(SlurmCase, Case110_ExpandsListsOfTasks) {
  EXPECT_THAT(expand_tasks_per_node("3(x2),2,11(x4)"), ElementsAre(3, 3, 2, 11, 11, 11, 11));
}

/// The task of rank 1 of a server and four workers over three nodes must have `own_gpus`.
void check_gpus(int gpus_per_node, int gpus_per_task, const char* own_gpus) {
  const Environment variables{{"SLURM_PROCID", "1"},
                              {"SLURM_STEP_NUM_TASKS", "5"},
                              {"SLURM_STEP_NODELIST", "t02n[13,41,43]"},
                              {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}};
  const SlurmClusterResolver resolver(
      {.jobs = {{"ps", 1}, {"worker", 4}}, .gpus_per_node = gpus_per_node, .gpus_per_task = gpus_per_task},
      variables);
  EXPECT_EQ(resolver.cluster_spec(),
            (ClusterSpec{{"ps", {"t02n13:8888"}},
                         {"worker", {"t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n43:8888"}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_THAT(std::getenv("CUDA_VISIBLE_DEVICES"), StrEq(own_gpus));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(SlurmCase, Case112_DealsNodesTasksAndGpus) { check_gpus(2, 1, "1"); }

TEST(SlurmCase, Case113_DealsSeveralGpusPerTask) { check_gpus(4, 2, "2,3"); }

Environment step_on(const char* hosts) {
  return {{"SLURM_PROCID", "0"},
          {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_STEP_NODELIST", hosts},
          {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};
}

TEST(SlurmCase, DifferenceAHostIsListedOnce) {
  EXPECT_THAT([] { SlurmClusterResolver({}, step_on("a,a")); },
              ThrowsMessage<InvalidArgument>(HasSubstr("names the host a twice")));
}

TEST(SlurmCase, DifferenceNoJobsMeanWorkers) {
  EXPECT_EQ(SlurmClusterResolver({.jobs = {}}, step_on("a,b")).cluster_spec(),
            (ClusterSpec{{"worker", {"a:8888", "b:8888"}}}));
}

TfConfigClusterResolver configured(const char* text) {
  return TfConfigClusterResolver({}, {{"TF_CONFIG", text}});
}

TEST(TfConfigCase, Case115_NamesTheMaster) {
  EXPECT_EQ(configured("{}").master(), "");
  EXPECT_EQ(
      configured(R"({"cluster": {"worker": ["n0:1"]}, "task": {"type": "worker", "index": 0}})").master(),
      "");
  EXPECT_EQ(configured(R"({"session_master": "n7:1"})").master(), "n7:1");
  EXPECT_EQ(configured(R"({"session_master": "n7:1", "cluster": {"worker": ["n0:1", "n1:1"]}})")
                .master("worker", 1),
            "n7:1");
}

TEST(TfConfigCase, Case116_MayNameSomeTasksOfAJob) {
  const ClusterSpec spec =
      configured(R"({"cluster": {"worker": {"1": "n1:1"}}, "task": {"type": "worker", "index": 1}})")
          .cluster_spec();
  EXPECT_EQ(spec.tasks("worker"), (ClusterSpec::Tasks{{1, "n1:1"}}));
}

TEST(RoleCase, Case118_NumbersTheChiefFirst) {
  const std::vector<std::string> workers{"n1:1", "n2:1", "n3:1"};
  const ClusterTask second_worker{"worker", 1};
  EXPECT_EQ(id_in_cluster(ClusterSpec{{"chief", {"n0:1"}}, {"worker", workers}}, second_worker), 2);
  EXPECT_EQ(id_in_cluster(ClusterSpec{{"worker", workers}}, second_worker), 1);
  EXPECT_THROW(static_cast<void>(
                   id_in_cluster(ClusterSpec{{"worker", workers}, {"ps", {"n4:1"}}}, ClusterTask{"ps", 0})),
               InvalidArgument);
  EXPECT_THROW(static_cast<void>(id_in_cluster(ClusterSpec{{"chief", {"n0:1", "n4:1"}}, {"worker", workers}},
                                               second_worker)),
               InvalidArgument);
}

}  // namespace
}  // namespace cohort::testing
