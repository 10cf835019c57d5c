// What tasks are to their cluster.
#include <cohort/cluster/cluster_roles.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/cluster/cluster_spec_json.h>

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const ClusterSpec kWithChief{{"chief", {"c"}}, {"worker", {"a", "b"}}, {"ps", {"p"}}, {"evaluator", {"e"}}};
const ClusterSpec kWithoutChief{{"worker", {"a", "b"}}, {"ps", {"p"}}};

TEST(ClusterRoles, TheChiefIsTheJobOfThatNameOrElseWorkerZero) {
  EXPECT_TRUE(is_chief(kWithChief, {"chief", 0}));
  EXPECT_FALSE(is_chief(kWithChief, {"worker", 0}));
  EXPECT_TRUE(is_chief(kWithoutChief, {"worker", 0}));
  EXPECT_FALSE(is_chief(kWithoutChief, {"worker", 1}));
  EXPECT_FALSE(is_chief(kWithoutChief, {"ps", 0}));
  EXPECT_TRUE(is_chief(kWithoutChief, {"evaluator", 0}));
}

TEST(ClusterRoles, ChiefAndWorkersTrainTogether) {
  EXPECT_EQ(worker_count(kWithChief, "worker"), 3);
  EXPECT_EQ(worker_count(kWithoutChief, "worker"), 2);
  EXPECT_EQ(worker_count(kWithChief, "evaluator"), 1);
  EXPECT_EQ(id_in_cluster(kWithChief, {"chief", 0}), 0);
  EXPECT_EQ(id_in_cluster(kWithChief, {"worker", 1}), 2);
  EXPECT_EQ(id_in_cluster(kWithoutChief, {"worker", 1}), 1);
  EXPECT_EQ(collective_leader(kWithChief, {"worker", 1}), (ClusterTask{"chief", 0}));
  EXPECT_EQ(collective_leader(kWithoutChief, {"ps", 0}), (ClusterTask{"worker", 0}));
  EXPECT_EQ(collective_leader(kWithoutChief, {"evaluator", 0}), std::nullopt);
}

TEST(ClusterRoles, ParameterServersDoNotTrain) {
  EXPECT_THAT([] { return worker_count(kWithChief, "ps"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'ps'")));
  EXPECT_THAT(
      [] {
        return id_in_cluster(kWithChief, {"ps", 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("does not train")));
}

TEST(ClusterRoles, RefuseTasksAndJobsThatThereCannotBe) {
  EXPECT_THAT(
      [] {
        return is_chief(kWithChief, {"worker", 2});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no task 2")));
  EXPECT_THAT(
      [] {
        return is_chief(kWithoutChief, {"chief", 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no job 'chief'")));
  EXPECT_THAT(
      [] {
        return is_chief({{"boss", {"a"}}}, {"boss", 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a job 'boss'")));
  EXPECT_THAT(
      [] {
        return is_chief({{"chief", {"a", "b"}}}, {"chief", 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("2 tasks of the job 'chief'")));
}

TEST(ClusterSpecJson, ReadsWhatItWrites) {
  for (const char* text : {R"({"ps":{"3":"c:3"},"worker":["a:1","b:2"]})", "{}", R"({"worker":[]})"})
    EXPECT_EQ(to_json(cluster_spec_from_json(text)), text);
}

}  // namespace
}  // namespace cohort::testing
