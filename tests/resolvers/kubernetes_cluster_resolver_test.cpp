// Lists of pods as Kubernetes gives them.
#include <cohort/resolvers/kubernetes_cluster_resolver.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string pod(const std::string& name, const std::string& job, const std::string& phase,
                const std::string& ip) {
  return fmt::format(R"({{"metadata": {{"name": "{}", "labels": {{"job-name": "{}"}}}},
                          "status": {{"phase": "{}", "podIP": "{}"}}}})",
                     name, job, phase, ip);
}

std::string list(const std::vector<std::string>& pods) {
  return fmt::format(R"({{"kind": "List", "items": [{}]}})", fmt::join(pods, ","));
}

const std::string kPods =
    list({pod("train-1", "cohort", "Running", "10.0.0.2"), pod("train-0", "cohort", "Running", "10.0.0.1"),
          pod("store-0", "store", "Running", "10.0.0.9"), pod("web", "other", "Pending", "")});

TEST(KubernetesClusterResolver, TakesThePodsOfAJobByName) {
  const KubernetesClusterResolver resolver(kPods, {}, {{"HOSTNAME", "train-1"}});
  EXPECT_EQ(resolver.cluster_spec(), (ClusterSpec{{"worker", {"10.0.0.1:8470", "10.0.0.2:8470"}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "grpc://10.0.0.2:8470");
}

TEST(KubernetesClusterResolver, NumbersTasksAsThePodsAre) {
  std::vector<std::string> pods;
  for (const int number : {10, 2, 11, 0}) {
    const std::string text = std::to_string(number);
    pods.push_back(pod("train-" + text, "cohort", "Running", "10.0.0." + text));
  }
  EXPECT_EQ(KubernetesClusterResolver(list(pods), {.port = 1}, {}).cluster_spec(),
            (ClusterSpec{{"worker", {"10.0.0.0:1", "10.0.0.2:1", "10.0.0.10:1", "10.0.0.11:1"}}}));
}

TEST(KubernetesClusterResolver, KnowsSeveralJobs) {
  const KubernetesClusterResolver resolver(kPods,
                                           {.jobs = {{"worker", "job-name=cohort"}, {"ps", "job-name=store"}},
                                            .port = 1,
                                            .rpc_layer = "",
                                            .own_pod = "store-0"},
                                           {});
  EXPECT_EQ(resolver.cluster_spec().num_tasks("worker"), 2);
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.master(), "10.0.0.9:1");
}

TEST(KubernetesClusterResolver, HasNoTaskOutsideThePods) {
  const KubernetesClusterResolver resolver(kPods, {}, {{"HOSTNAME", "laptop"}});
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  EXPECT_EQ(resolver.task_id(), std::nullopt);
  EXPECT_EQ(resolver.master(), "");
  EXPECT_EQ(resolver.master("worker", 0), "grpc://10.0.0.1:8470");
}

TEST(KubernetesClusterResolver, NamesThePodThatDoesNotRun) {
  const auto resolve = [](const std::string& pods) { KubernetesClusterResolver(pods, {}, {}); };
  EXPECT_THAT([&] { resolve(list({pod("a", "cohort", "Pending", "")})); },
              ThrowsMessage<Unavailable>(HasSubstr("pod 'a' is Pending, not Running")));
  EXPECT_THAT(
      [&] {
        resolve(R"({"items": [{"metadata": {"name": "a", "labels": {"job-name": "cohort"}},
                                           "status": {"phase": "Running"}}]})");
      },
      ThrowsMessage<Unavailable>(HasSubstr("pod 'a' has no status.podIP")));
  EXPECT_THAT([&] { resolve(list({pod("a", "cohort", "Running", "")})); },
              ThrowsMessage<Unavailable>(HasSubstr("pod 'a' has no status.podIP")));
}

TEST(KubernetesClusterResolver, RefusesListsOfAnotherForm) {
  const auto resolve = [](const std::string& pods) { KubernetesClusterResolver(pods, {}, {}); };
  EXPECT_THAT([&] { resolve("{"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("not JSON at byte 2"), HasSubstr("\"items\""))));
  for (const char* text : {"[]", "3", "{}", R"({"items": {}})"})
    EXPECT_THAT([&] { resolve(text); }, ThrowsMessage<InvalidArgument>(HasSubstr("write {\"items\"")))
        << text;
  EXPECT_THAT([&] { resolve(R"({"items": [7]})"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("item 0 is 7")));
  EXPECT_THAT(
      [&] {
        KubernetesClusterResolver(kPods, {.jobs = {{"worker", "cohort"}}}, {});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("label 'cohort'; a label is key=value")));
}

}  // namespace
}  // namespace cohort::testing
