// COHORT_CHECK_BUFFERS=true, with threads as members; tests/mpi/buffer_checks_test.cpp has processes.
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include <cohort/collective/thread_communicator.h>

#include "collective/communicator_base.h"
#include "communicator_contracts.h"
#include "members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Before the settings are read.
const bool kSet = ::setenv("COHORT_CHECK_BUFFERS", "true", 1) == 0;

class BufferChecks : public ::testing::TestWithParam<int> {};

TEST_P(BufferChecks, NameWhoChangedATensor) { for_each_member(GetParam(), check_changed_tensors); }
TEST_P(BufferChecks, LeaveReductionsAsTheyAre) { for_each_member(GetParam(), check_reductions); }
TEST_P(BufferChecks, LeaveMovedDataAsItIs) { for_each_member(GetParam(), check_data_movement); }
TEST_P(BufferChecks, LeaveMessagesAsTheyAre) { for_each_member(GetParam(), check_messages); }
TEST_P(BufferChecks, LetManyBeInFlight) { for_each_member(GetParam(), check_async); }
TEST_P(BufferChecks, LeaveMismatchesToTheCommunicator) { for_each_member(GetParam(), check_mismatch); }

TEST_P(BufferChecks, FinishDroppedWorks) {
  auto communicators = make_thread_communicators(GetParam());
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (auto& communicator : communicators)
    threads.emplace_back([&communicator] { check_dropped_works(std::move(communicator)); });
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Members, BufferChecks, ::testing::Values(1, 2, 3, 7));

/// A communicator of one member that can change tensors while a call is in flight.
class Alone final : public CommunicatorBase {
 public:
  explicit Alone(std::function<void()> in_flight)
      : CommunicatorBase(0, {MemberInfo{4, "n1"}}), in_flight_(std::move(in_flight)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "alone"; }
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int>, int) override { return nullptr; }
  void abort(const Error&) override {}
  [[nodiscard]] std::optional<Error> failure() override { return std::nullopt; }

 private:
  struct Done final : Work::State {
    void wait() override {}
    [[nodiscard]] bool done() noexcept override { return true; }
  };
  Work begin(const CollectiveCall&) override {
    in_flight_();
    return Work(std::make_shared<Done>());
  }

  std::function<void()> in_flight_;
};

TEST(BufferChecksOfBlockingCalls, NameWhatAnotherThreadChanged) {
  const Tensor tensor = Tensor::zeros({10'000}, DType::kFloat32);
  Alone communicator([&] { tensor.span<float>()[5000] = 1; });
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { communicator.broadcast(tensor, 0); }),
              AllOf(HasSubstr("broadcast #0"), HasSubstr("member 0 (worker 4, host n1)"),
                    HasSubstr("elements 4096 to 5119")));
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] {
                           tensor.fill(0);
                           communicator.all_reduce(tensor, ReduceOp::kSum);
                         }),
              HasSubstr("all_reduce #1"));
}

TEST(BufferChecksOfBlockingCalls, PassWhatNobodyChanged) {
  Alone communicator([] {});
  const Tensor tensor = Tensor::full({10'000}, DType::kFloat32, 3);
  communicator.all_reduce(tensor, ReduceOp::kSum);
  EXPECT_EQ(tensor.span<float>().back(), 3);
}

}  // namespace
}  // namespace cohort::testing
