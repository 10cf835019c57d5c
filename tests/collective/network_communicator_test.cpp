// The contract that every Communicator fulfils, over several nodes that are pretended.
#include "collective/network_communicators.h"

#include <atomic>
#include <functional>

#include <gmock/gmock.h>

#include "collective_contract.h"
#include "network_members.h"
#include "reproducible_contract.h"

namespace cohort::testing {
namespace {

class NetworkCommunicator : public ::testing::TestWithParam<Layout> {};

TEST_P(NetworkCommunicator, NumbersItsMembersWorkerByWorker) {
  for_each_member(GetParam(), [&](Communicator& communicator) {
    EXPECT_EQ(communicator.name(), "network");
    EXPECT_EQ(communicator.size(), GetParam().nodes * GetParam().members);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    EXPECT_EQ(communicator.members()[rank].worker, communicator.rank() / GetParam().members);
  });
}
TEST_P(NetworkCommunicator, ReducesExactly) { for_each_member(GetParam(), check_reductions); }
TEST_P(NetworkCommunicator, FollowsTheRulesOfArithmetic) { for_each_member(GetParam(), check_arithmetic); }
TEST_P(NetworkCommunicator, MovesData) { for_each_member(GetParam(), check_data_movement); }
TEST_P(NetworkCommunicator, WorksAtEverySizeInAnyMemory) {
  for_each_member(GetParam(), check_sizes_and_memory);
}
TEST_P(NetworkCommunicator, PassesMessages) { for_each_member(GetParam(), check_messages); }
TEST_P(NetworkCommunicator, KeepsManyInFlight) { for_each_member(GetParam(), check_async); }
TEST_P(NetworkCommunicator, ReducesPackedTensors) { for_each_member(GetParam(), check_packed); }
TEST_P(NetworkCommunicator, KeepsTheOrderOfTheRanks) {
  for_each_member(GetParam(), check_rank_order_of_sizes, {.reproducible = true});
}
TEST_P(NetworkCommunicator, RefusesWrongArguments) { for_each_member(GetParam(), check_arguments); }
TEST_P(NetworkCommunicator, NamesTheOddMember) { for_each_member(GetParam(), check_mismatch); }
TEST_P(NetworkCommunicator, NamesTheMissingMember) {
  for_each_member(GetParam(), check_missing, {.timeout_seconds = 0.2});
}
TEST_P(NetworkCommunicator, AgreesOnCallsOfOthers) {
  for_each_member(GetParam(), check_agreement_on_different_calls);
}
TEST_P(NetworkCommunicator, NamesWhoDoesNotComeToAgree) {
  for_each_member(GetParam(), check_agreement_with_a_missing_member, {.timeout_seconds = 0.2});
}
TEST_P(NetworkCommunicator, AbortReleasesThoseWhoWait) {
  for_each_member(GetParam(), [](Communicator& communicator) {
    if (communicator.rank() == communicator.size() - 1) {
      communicator.abort(Aborted("the last replica failed"));
      return;
    }
    EXPECT_THROW(communicator.barrier(), Aborted);
  });
}

/// Wants short messages, and keeps the length of the longest.
class ShortMessages final : public ThreadTransport {
 public:
  static constexpr std::size_t kBytes = 8192;
  ShortMessages(std::shared_ptr<Switchboard> board, int rank, std::atomic<std::size_t>& longest)
      : ThreadTransport(std::move(board), rank), longest_(longest) {}

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    for (std::size_t seen = longest_;
         seen < data.size() && !longest_.compare_exchange_weak(seen, data.size());) {
    }
    return ThreadTransport::send(to, data);
  }
  [[nodiscard]] std::size_t message_bytes() const noexcept override { return kBytes; }

 private:
  std::atomic<std::size_t>& longest_;
};

TEST_P(NetworkCommunicator, SendsNoLongerMessagesThanItsTransportWants) {
  std::atomic<std::size_t> longest{0};
  const auto move_all = [](Communicator& communicator) {
    const int size = communicator.size();
    const Tensor whole = Tensor::full({60'000 * std::int64_t{size}}, DType::kFloat32, 1);
    const Tensor block = Tensor::full({60'000}, DType::kFloat32, 2);
    communicator.all_reduce(whole, ReduceOp::kSum);
    communicator.reduce(whole, whole, ReduceOp::kMax, 0);
    communicator.reduce_scatter(whole, block, ReduceOp::kMax);
    EXPECT_EQ(block.span<float>().back(), static_cast<float>(size));
    communicator.broadcast(whole, size - 1);
    communicator.all_gather(block, whole);
    communicator.gather(block, whole, 0);
    communicator.scatter(whole, block, 0);
    communicator.all_to_all(whole, Tensor::uninitialized(whole.shape(), whole.dtype()));
    EXPECT_EQ(block.span<float>().front(), static_cast<float>(size));
  };
  for_each_member(GetParam(), move_all, {}, [&](std::shared_ptr<Switchboard> board, int rank) {
    return std::make_unique<ShortMessages>(std::move(board), rank, longest);
  });
  EXPECT_LE(longest, ShortMessages::kBytes);
  EXPECT_GT(longest, ShortMessages::kBytes / 2);
}

INSTANTIATE_TEST_SUITE_P(Layouts, NetworkCommunicator,
                         ::testing::Values(Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{3, 2},
                                           Layout{2, 3}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

}  // namespace
}  // namespace cohort::testing
