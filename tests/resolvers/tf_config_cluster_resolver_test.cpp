// TF_CONFIG, well and badly formed.
#include <cohort/resolvers/tf_config_cluster_resolver.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TfConfigClusterResolver resolver_of(const std::string& text, TfConfigOptions options = {}) {
  return TfConfigClusterResolver(std::move(options), {{"TF_CONFIG", text}});
}

auto resolving(const std::string& text) {
  return [=] { return resolver_of(text); };
}

constexpr const char* kTwoWorkers =
    R"({"cluster": {"worker": ["n0:1", "n1:2"]}, "task": {"type": "worker", "index": "1"}, "rpc_layer": "grpc"})";

TEST(TfConfigClusterResolver, ReadsClusterAndTask) {
  const TfConfigClusterResolver resolver = resolver_of(kTwoWorkers);
  EXPECT_EQ(resolver.cluster_spec(), (ClusterSpec{{"worker", {"n0:1", "n1:2"}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "grpc://n1:2");
  EXPECT_EQ(resolver.master("worker", 0), "grpc://n0:1");
}

TEST(TfConfigClusterResolver, PrefersItsOptions) {
  const TfConfigClusterResolver resolver =
      resolver_of(kTwoWorkers, {.task_type = "worker", .task_id = 0, .rpc_layer = ""});
  EXPECT_EQ(resolver.master(), "n0:1");
}

TEST(TfConfigClusterResolver, IsAloneWithoutTheVariable) {
  const TfConfigClusterResolver resolver({}, {});
  EXPECT_TRUE(resolver.cluster_spec().empty());
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  EXPECT_EQ(resolver.master(), "");
}

TEST(TfConfigClusterResolver, NeedsNoMasterForASingleTask) {
  EXPECT_EQ(
      resolver_of(R"({"cluster": {"worker": ["n0:1"]}, "task": {"type": "worker", "index": 0}})").master(),
      "");
  EXPECT_EQ(resolver_of(R"({"session_master": "m:1"})").master(), "m:1");
  EXPECT_EQ(resolver_of(R"({"session_master": "m:1"})").master("worker", 1), "m:1")
      << "whatever is asked for";
  EXPECT_EQ(resolver_of(R"({"cluster": {"worker": ["n0:1"]}})").master("worker", 0), "");
}

TEST(TfConfigClusterResolver, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(resolving(""),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("TF_CONFIG"), HasSubstr("byte 1"))));
  EXPECT_THAT(resolving("{"), ThrowsMessage<InvalidArgument>(HasSubstr("byte 2")));
  EXPECT_THAT(resolving("5"), ThrowsMessage<InvalidArgument>(HasSubstr("TF_CONFIG is 5")));
  EXPECT_THAT(resolving(R"({"cluster": "x"})"),
              ThrowsMessage<InvalidArgument>(HasSubstr("the cluster is \"x\"")));
  EXPECT_THAT(resolving(R"({"cluster": {"worker": "n0:1"}})"),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'worker'"), HasSubstr("list of addresses"))));
  EXPECT_THAT(resolving(R"({"cluster": {"worker": [1]}})"),
              ThrowsMessage<InvalidArgument>(HasSubstr("the task 1")));
  EXPECT_THAT(resolving(R"({"cluster": {"worker": {"x": "n0:1"}}})"),
              ThrowsMessage<InvalidArgument>(HasSubstr("a task 'x'")));
  EXPECT_THAT(resolving(R"({"task": {"index": "x"}})"),
              ThrowsMessage<InvalidArgument>(HasSubstr("task.index is 'x'")));
  EXPECT_THAT(resolving(R"({"task": 3})"), ThrowsMessage<InvalidArgument>(HasSubstr("task is 3")));
}

// Whoever writes it out again, as the message does, would run out of stack.
TEST(TfConfigClusterResolver, RefusesDeepNesting) {
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(resolving(R"({"task": )" + nested + "}"),
              ThrowsMessage<InvalidArgument>(HasSubstr("more than 32 levels deep")));
  EXPECT_THAT(resolving(R"({"cluster": {"worker": )" + nested + "}}"),
              ThrowsMessage<InvalidArgument>(HasSubstr("more than 32 levels deep")));
}

}  // namespace
}  // namespace cohort::testing
