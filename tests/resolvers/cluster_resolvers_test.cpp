// Where a cluster is read from: the descriptor that a task has inherited, TF_CONFIG, MPI, and several of
// these as one.

#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cohort/base/error.h>
#include <cohort/remote/local_cluster.h>
#include <cohort/resolvers/mpi_cluster_resolver.h>
#include <cohort/resolvers/task_cluster_resolver.h>
#include <cohort/resolvers/tf_config_cluster_resolver.h>
#include <cohort/resolvers/union_cluster_resolver.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../strategy/fake_cluster.h"
#include "base/system_calls.h"
#include "cluster/sockets.h"
#include "remote/supervised_task.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using watch::Fd;

Fd file_with(const std::string& text) {
  Fd file(make_memory_file("card"));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return file;
}

Environment naming(int descriptor) { return {{"COHORT_TASK_FD", std::to_string(descriptor)}}; }

auto resolving(const Environment& variables) {
  return [=] { const TaskClusterResolver resolver(variables); };
}

TEST(TaskClusterResolver, ReadsTheCardAsOftenAsItIsMade) {
  const remote::LocalCluster cluster({{"chief", 1}, {"ps", 2}});
  const remote::TaskPlace& place = cluster.place({"ps", 1});
  const Fd card = file_with(remote::to_card(place));
  for (int time = 0; time < 2; ++time) {
    const TaskClusterResolver resolver(naming(card.get()));
    EXPECT_EQ(resolver.task_type(), "ps");
    EXPECT_EQ(resolver.task_id(), 1);
    EXPECT_EQ(resolver.cluster_spec().jobs(), (std::vector<std::string>{"chief", "ps"}));
    EXPECT_EQ(resolver.master(), place.addresses.back().network.front());
    EXPECT_EQ(resolver.bootstrap(), nullptr);
    EXPECT_EQ(resolver.place().addresses, place.addresses);
    EXPECT_EQ(resolver.place().secret, place.secret);
    EXPECT_EQ(resolver.place().memory, place.memory);
  }
}

TEST(TaskClusterResolver, KeepsWhatItHasInheritedFromProgramsThatItStarts) {
  const remote::LocalCluster cluster({{"ps", 1}});
  const remote::TaskPlace& place = cluster.places().front();
  const Fd card = file_with(remote::to_card(place));
  const std::vector<int> inherited{card.get(), place.network_listener, place.local_listener, place.memory};
  for (const int descriptor : inherited) ASSERT_EQ(::fcntl(descriptor, F_SETFD, 0), 0);
  const TaskClusterResolver resolver(naming(card.get()));
  for (const int descriptor : inherited) EXPECT_EQ(::fcntl(descriptor, F_GETFD), FD_CLOEXEC);
}

TEST(TaskClusterResolver, SaysHowToStartATask) {
  EXPECT_THAT(resolving({}), ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("COHORT_TASK_FD is not set"),
                                                                  HasSubstr("cohort-run --roles"))));
  EXPECT_THAT(resolving({{"COHORT_TASK_FD", "x"}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("invalid COHORT_TASK_FD=x")));
}

TEST(TaskClusterResolver, SaysWhatBecameOfTheCard) {
  int closed = -1;
  {
    const Fd file = file_with("");
    closed = file.get();
  }
  EXPECT_THAT(resolving(naming(closed)), ThrowsMessage<InvalidArgument>(HasSubstr("is not open")));

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reader(ends[0]);
  const Fd writer(ends[1]);
  EXPECT_THAT(resolving(naming(ends[0])), ThrowsMessage<InvalidArgument>(HasSubstr("is no task's card")));

  const Fd text = file_with("{}");
  EXPECT_THAT(resolving(naming(text.get())), ThrowsMessage<InvalidArgument>(HasSubstr("'task' is missing")));

  remote::TaskPlace place = remote::LocalCluster({{"worker", 1}}).places().front();
  place.network_listener = 1 << 20;
  const Fd card = file_with(remote::to_card(place));
  EXPECT_THAT(resolving(naming(card.get())),
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("TCP listener"), HasSubstr("is not open"))));
}

// TF_CONFIG, well and badly formed.

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

// The resolver reads a Bootstrap; a cluster of threads stands in for MPI.

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

// Several clusters as one.

std::shared_ptr<const ClusterResolver> simple(ClusterSpec spec, const char* master = "") {
  return std::make_shared<SimpleClusterResolver>(std::move(spec), "worker", 0, nullptr,
                                                 SimpleClusterOptions{.master = master, .rpc_layer = "grpc"});
}

ClusterSpec sparse(int index, const char* address) { return ClusterSpec({{"worker", {{index, address}}}}); }

TEST(UnionClusterResolver, AppendsListsAndNumbersThemAnew) {
  const UnionClusterResolver both(
      {simple({{"worker", {"h4", "h5"}}}), simple({{"worker", {"h0"}}, {"ps", {"p0"}}})});
  EXPECT_EQ(both.cluster_spec(), (ClusterSpec{{"worker", {"h4", "h5", "h0"}}, {"ps", {"p0"}}}));
}

TEST(UnionClusterResolver, KeepsIndicesWhereThereAreGaps) {
  const UnionClusterResolver both({simple({{"worker", {"h4"}}}), simple(sparse(1, "h5"))});
  EXPECT_EQ(both.cluster_spec(), (ClusterSpec{{"worker", {"h4", "h5"}}}));
  const UnionClusterResolver clash({simple(sparse(1, "h4")), simple(sparse(1, "h5"))});
  EXPECT_THAT([&] { return clash.cluster_spec(); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("task 1"), HasSubstr("h4 and h5"))));
}

TEST(UnionClusterResolver, IsOtherwiseTheFirst) {
  const UnionClusterResolver both({simple({{"worker", {"h4"}}}, "m1"), simple({{"worker", {"h5"}}}, "m2")});
  EXPECT_EQ(both.task_type(), "worker");
  EXPECT_EQ(both.task_id(), 0);
  EXPECT_EQ(both.rpc_layer(), "grpc");
  EXPECT_EQ(both.master(), "grpc://m1");
  const UnionClusterResolver other({simple({{"worker", {"h4"}}})}, {.task_type = "ps", .task_id = 3});
  EXPECT_EQ(other.task_type(), "ps");
  EXPECT_EQ(other.task_id(), 3);
}

TEST(UnionClusterResolver, NeedsAResolver) {
  EXPECT_THAT([] { return UnionClusterResolver({}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("at least one")));
}

}  // namespace
}  // namespace cohort::testing
