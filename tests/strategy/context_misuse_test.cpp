// A ReplicaContext used where it is not the current one: three situations, three texts.
#include <barrier>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/strategy/one_device_strategy.h>

#include "strategies.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// Every function of a ReplicaContext that communicates must be refused with this text.
template <class Matcher>
void expect_refused(const ReplicaContext& replica, const Matcher& text) {
  EXPECT_THAT([&] { return replica.all_reduce(ReduceOp::kSum, 1.0); },
              ThrowsMessage<WrongContext>(AllOf(HasSubstr("all_reduce was called"), text)));
  EXPECT_THAT([&] { return replica.all_gather(Tensor::from({1.0f}), 0); },
              ThrowsMessage<WrongContext>(AllOf(HasSubstr("all_gather was called"), text)));
  EXPECT_THAT([&] { replica.merge_call([](const Strategy&) {}); },
              ThrowsMessage<WrongContext>(AllOf(HasSubstr("merge_call was called"), text)));
}

class ContextMisuse : public WithReplicas {};
COHORT_INSTANTIATE_REPLICAS(ContextMisuse);

TEST_P(ContextMisuse, InCrossReplicaContextIsRefused) {
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy&) {
      expect_refused(replica, HasSubstr("not inside a replica function; it is in cross-replica context"));
    });
  });
}

TEST_P(ContextMisuse, InARunInsideAMergeIsRefused) {
  strategy_.run([&](ReplicaContext& replica) {
    replica.merge_call([&](const Strategy& strategy) {
      strategy.run(
          [&] { expect_refused(replica, HasSubstr("of the same strategy; use the context given to")); });
    });
  });
}

TEST_P(ContextMisuse, WhileAnotherStrategyIsActiveIsRefused) {
  const OneDeviceStrategy other;
  strategy_.run([&](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() != 0) return;
    std::thread([&] {
      other.run([&] {
        expect_refused(replica,
                       HasSubstr("a replica context of MirroredStrategy, but OneDeviceStrategy is active"));
      });
    }).join();
  });
}

TEST_P(ContextMisuse, OnAThreadThatIsNoReplicaIsRefused) {
  strategy_.run([&](ReplicaContext& replica) {
    std::thread([&] { expect_refused(replica, HasSubstr("but the default strategy is active")); }).join();
  });
}

class ContextOfAnotherReplica : public WithSeveralReplicas {};
COHORT_INSTANTIATE_SEVERAL_REPLICAS(ContextOfAnotherReplica);

TEST_P(ContextOfAnotherReplica, IsRefusedNamingBoth) {
  std::vector<const ReplicaContext*> contexts(static_cast<std::size_t>(replicas()));
  std::barrier together(replicas());
  strategy_.run([&](ReplicaContext& replica) {
    const int id = replica.replica_id_in_sync_group();
    const int neighbour = (id + 1) % replicas();
    contexts[static_cast<std::size_t>(id)] = &replica;
    together.arrive_and_wait();
    expect_refused(
        *contexts[static_cast<std::size_t>(neighbour)],
        HasSubstr("the context of replica " + std::to_string(neighbour) + ", but this thread runs replica " +
                  std::to_string(id) + " of the same strategy"));
    together.arrive_and_wait();  // contexts live until here
  });
}

TEST(ReplicaContexts, AreNotCopied) { static_assert(!std::is_copy_constructible_v<ReplicaContext>); }

}  // namespace
}  // namespace cohort::testing
