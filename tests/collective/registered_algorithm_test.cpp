// An algorithm that this program has registered and COHORT_ALGORITHM names, among threads
// of one node and of several.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "chain.h"
#include "members.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kElements = 100'000;

/// A gather in which everybody waits for what nobody sends.
class Idle final : public Algorithm {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "idle"; }
  [[nodiscard]] CollectiveKind kind() const noexcept override { return CollectiveKind::kGather; }
  [[nodiscard]] double seconds(const CallShape& /*shape*/,
                               const CostConstants& /*constants*/) const override {
    return 0;
  }
  [[nodiscard]] Task<> execute(Peers& peers, const CollectiveCall& /*call*/) const override {
    const std::shared_ptr<std::byte> scratch = peers.scratch(1);
    const UnderWay under_way(parts_);
    co_await peers.receive((peers.rank() + 1) % peers.size(), {scratch.get(), 1});
  }
  /// How many members' parts are under way.
  [[nodiscard]] int parts() const noexcept { return parts_; }

 private:
  class UnderWay {
   public:
    explicit UnderWay(std::atomic<int>& parts) : parts_(parts) { ++parts_; }
    ~UnderWay() { --parts_; }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    std::atomic<int>& parts_;
  };
  mutable std::atomic<int> parts_{0};
};

const std::shared_ptr<const Idle> kIdle = [] {
  register_algorithm(std::make_shared<Chain>());
  auto idle = std::make_shared<Idle>();
  register_algorithm(idle);
  return idle;
}();

Tensor filled(std::int64_t elements, double value) { return Tensor::full({elements}, DType::kInt32, value); }

double sum_of_ranks(const Communicator& communicator) {
  return communicator.size() * (communicator.size() + 1) / 2.0;
}

void expect_sum(Communicator& communicator) {
  const Tensor tensor = filled(kElements, communicator.rank() + 1);
  communicator.all_reduce(tensor, ReduceOp::kSum);
  EXPECT_TRUE(bitwise_equal(tensor, filled(kElements, sum_of_ranks(communicator))));
}

/// What the call throws. @throws nothing.
std::string error_of(Communicator& communicator, const Tensor& tensor) {
  try {
    communicator.all_reduce(tensor, ReduceOp::kSum);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// 0 nodes: threads that share a node.
class Registered : public ::testing::TestWithParam<Layout> {
 protected:
  static void on_members(const std::function<void(Communicator&)>& function,
                         const CommunicationOptions& options = {}) {
    if (GetParam().nodes == 0)
      for_each_member(GetParam().members, function, options);
    else
      for_each_member(GetParam(), function, options);
  }
};

TEST_P(Registered, CarriesOutLargeCalls) {
  on_members([](Communicator& communicator) {
    expect_sum(communicator);
    EXPECT_EQ(communicator.last_algorithm(), "chain");
    EXPECT_EQ(communicator.last_choice(), "forced");
    const Tensor input = filled(kElements, communicator.rank() + 1);
    const Tensor output = filled(kElements, -1);
    communicator.all_reduce_async(input, output, ReduceOp::kSum).wait();
    EXPECT_TRUE(bitwise_equal(output, filled(kElements, sum_of_ranks(communicator))));
  });
}

TEST_P(Registered, LeavesSmallCallsAndThoseItCannotCarryOutToCohort) {
  on_members([](Communicator& communicator) {
    const Tensor small = filled(1, 1);
    communicator.all_reduce(small, ReduceOp::kSum);
    EXPECT_TRUE(bitwise_equal(small, filled(1, communicator.size())));
    EXPECT_EQ(communicator.last_choice(), "size");
    const Tensor maxima = filled(kElements, communicator.rank());
    communicator.all_reduce(maxima, ReduceOp::kMax);
    EXPECT_TRUE(bitwise_equal(maxima, filled(kElements, communicator.size() - 1)));
    EXPECT_NE(communicator.last_algorithm(), "chain");
  });
}

TEST_P(Registered, IsDeafToTheProgramsMessages) {
  on_members([](Communicator& communicator) {
    const int next = (communicator.rank() + 1) % communicator.size();
    const int previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
    if (next == communicator.rank()) return;
    const Tensor room = filled(kElements, -1);
    const Tensor message = filled(kElements, communicator.rank());
    Work receiving = communicator.receive_async(room, previous);
    Work sending = communicator.send_async(message, next, 1);
    expect_sum(communicator);
    communicator.receive(filled(kElements, 0), previous, 1);
    communicator.send_async(message, next).wait();
    receiving.wait();
    sending.wait();
    EXPECT_TRUE(bitwise_equal(room, filled(kElements, previous)));
  });
}

TEST_P(Registered, EndsTheCallOfAllMembersWhenItThrows) {
  on_members([](Communicator& communicator) {
    if (communicator.size() == 1) return;
    const std::string error = error_of(communicator, filled(Chain::kThrowing, 1));
    EXPECT_THAT(error, HasSubstr("the chain broke"));
    EXPECT_THAT(error, HasSubstr("member 0"));
    EXPECT_EQ(error_of(communicator, filled(1, 1)), error) << "the communicator stays unusable";
  });
}

TEST_P(Registered, EndsByTheDeadlineWhenMembersWaitForEachOther) {
  on_members(
      [](Communicator& communicator) {
        if (communicator.size() == 1) return;
        std::string error = error_of(communicator, filled(Chain::kForgetful, 1));
        // Between nodes, a member that has nothing to wait for goes on to the next call.
        if (error == "no error") error = error_of(communicator, filled(1, 1));
        EXPECT_THAT(error, HasSubstr("deadline"));
      },
      {.timeout_seconds = 0.3});
}

TEST_P(Registered, IsNotReachedByCallsThatDiffer) {
  on_members([](Communicator& communicator) {
    if (communicator.size() == 1) return;
    const bool odd = communicator.rank() == communicator.size() - 1;
    EXPECT_THAT(error_of(communicator, filled(odd ? kElements + 1 : kElements, 1)),
                HasSubstr("members disagree"));
  });
}

// What a part holds goes back to its member's communicator, so it must not wait for the other members to
// leave.
TEST(RegisteredOnANode, IsOverWhenAnAsynchronousCallHasFailed) {
  auto communicators = make_thread_communicators(2, {.timeout_seconds = 60});
  std::vector<Work> works;
  for (const auto& communicator : communicators)
    works.push_back(communicator->gather_async(filled(kElements, 1), filled(2 * kElements, 0), 0));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (kIdle->parts() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  ASSERT_EQ(kIdle->parts(), 2);
  communicators[0]->abort(Aborted("has no more time"));
  for (Work& work : works) EXPECT_THROW(work.wait(), Aborted);
  EXPECT_EQ(kIdle->parts(), 0);
  works.clear();
  for (auto& communicator : communicators) communicator.reset();
}

INSTANTIATE_TEST_SUITE_P(Layouts, Registered,
                         ::testing::Values(Layout{0, 1}, Layout{0, 2}, Layout{0, 3}, Layout{0, 4},
                                           Layout{0, 7}, Layout{2, 1}, Layout{2, 2}, Layout{3, 1},
                                           Layout{3, 2}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

}  // namespace
}  // namespace cohort::testing
