// The contract that every Communicator fulfils, over several nodes that are pretended.
#include "collective/host_communicators.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>

#include <gmock/gmock.h>

#include <cohort/collective/communication_scope.h>

#include "communicator_contracts.h"
#include "members.h"
#include "thrown.h"

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
  for_each_member(GetParam(), check_missing, {.timeout_seconds = 0.1});
}
TEST_P(NetworkCommunicator, AgreesOnCallsOfOthers) {
  for_each_member(GetParam(), check_agreement_on_different_calls);
}
TEST_P(NetworkCommunicator, NamesWhoDoesNotComeToAgree) {
  for_each_member(GetParam(), check_agreement_with_a_missing_member, {.timeout_seconds = 0.1});
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

// ---- messages and calls that are given up in the middle

using ::testing::HasSubstr;

Tensor filled(std::int64_t elements, int value) {
  return Tensor::full({elements}, DType::kFloat32, static_cast<double>(value));
}

bool all_are(const Tensor& tensor, int value) {
  return std::ranges::all_of(tensor.span<float>(),
                             [&](float element) { return element == static_cast<float>(value); });
}

constexpr int kLater = 3;

void send_later_ones(Communicator& communicator, std::int64_t elements) {
  for (int value = 2; value < 2 + kLater; ++value) communicator.send(filled(elements, value), 1, 4);
}

void expect_later_ones(Communicator& communicator, std::int64_t elements) {
  for (int value = 2; value < 2 + kLater; ++value) {
    const Tensor received = filled(elements, -1);
    communicator.receive(received, 0, 4);
    EXPECT_TRUE(all_are(received, value)) << elements << " elements, message " << value;
  }
}

TEST(GivenUpMessage, IsNotReceivedAndSpoilsNoneBehindIt) {
  for (const std::int64_t elements : {100'000, 300'000, 600'000}) {
    std::latch given_up(1);
    for_each_member({2, 1},
                    [&](Communicator& communicator) {
                      if (communicator.rank() == 0) {
                        const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
                          communicator.send(filled(elements, 1), 1, 4, 0.1);
                        });
                        EXPECT_THAT(text, names_missing(1));
                        given_up.count_down();
                        send_later_ones(communicator, elements);
                      } else {
                        given_up.wait();
                        expect_later_ones(communicator, elements);
                      }
                      communicator.barrier();
                    },
                    {.timeout_seconds = 60});
  }
}

/// A transport that does not say that a transfer is complete while it stalls.
class StallingTransport final : public ThreadTransport {
 public:
  struct Stall {
    Channel channel = Channel::kMessage;
    bool of_sends = true;
    int first = 0;  ///< of those, from 0, once it is armed; the roll call's are not counted
    std::atomic<bool> armed = true;
    std::atomic<bool> over = false;
    std::latch reached{1};
  };

  StallingTransport(std::shared_ptr<Switchboard> board, int rank, Stall* stall)
      : ThreadTransport(std::move(board), rank), stall_(stall) {}

  [[nodiscard]] Ticket send(const Address& to, std::span<const std::byte> data) override {
    const Ticket ticket = ThreadTransport::send(to, data);
    count(to, true, ticket);
    return ticket;
  }
  [[nodiscard]] Ticket receive(const Address& from, std::span<std::byte> into) override {
    const Ticket ticket = ThreadTransport::receive(from, into);
    count(from, false, ticket);
    return ticket;
  }
  [[nodiscard]] std::optional<std::size_t> poll(Ticket ticket) override {
    if (stall_ != nullptr && ticket == stalled_ && !stall_->over) return std::nullopt;
    return ThreadTransport::poll(ticket);
  }

 private:
  void count(const Address& address, bool sends, Ticket ticket) {
    const bool of_roll_call = address.channel == Channel::kCollective && address.tag == 0;
    if (stall_ == nullptr || address.channel != stall_->channel || sends != stall_->of_sends ||
        of_roll_call || !stall_->armed) {
      return;
    }
    if (seen_++ != stall_->first) return;
    stalled_ = ticket;
    stall_->reached.count_down();
  }

  Stall* stall_;
  int seen_ = 0;
  std::optional<Ticket> stalled_;
};

/// Two members on nodes of their own; transfers of `stalled` stall.
void for_two_members(int stalled, StallingTransport::Stall& stall,
                     const std::function<void(Communicator&)>& function) {
  for_each_member({2, 1}, function, {.timeout_seconds = 60},
                  [&](std::shared_ptr<Switchboard> board, int rank) {
                    return std::make_unique<StallingTransport>(std::move(board), rank,
                                                               rank == stalled ? &stall : nullptr);
                  });
}

TEST(GivenUpMessage, IsDroppedByAReceiverInTheMiddleOfIt) {
  constexpr std::int64_t kElements = 1'000'000;
  StallingTransport::Stall stall{.first = 2};  // after the label and a piece
  for_two_members(0, stall, [&](Communicator& communicator) {
    if (communicator.rank() == 0) {
      EXPECT_THAT(message_of(ErrorCode::kDeadlineExceeded,
                             [&] { communicator.send(filled(kElements, 1), 1, 4, 0.2); }),
                  names_missing(1));
      send_later_ones(communicator, kElements);
    } else {
      expect_later_ones(communicator, kElements);
    }
    communicator.barrier();
  });
}

TEST(GivenUpMessage, EndsTheCommunicatorWhereItIsTheReceiverWhoGivesUpInTheMiddle) {
  StallingTransport::Stall stall{.first = 1};
  for_two_members(0, stall, [&](Communicator& communicator) {
    const Tensor tensor = filled(1'000'000, 1);
    std::string text;
    if (communicator.rank() == 0) {
      text = message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.send(tensor, 1); });
    } else {
      // Before the label has come, the message is still to be had.
      while (!communicator.failure())
        text = message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.receive(tensor, 0, 0, 0.2); });
    }
    EXPECT_THAT(text, HasSubstr("was on its way already"));
    EXPECT_EQ(message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.barrier(); }), text);
  });
}

TEST(GivenUpCall, GivesALateMemberNothingThatOthersWroteAfterwards) {
  constexpr auto kCollective = Transport::Channel::kCollective;
  StallingTransport::Stall sends{.channel = kCollective, .armed = false, .over = true};
  StallingTransport::Stall receives{.channel = kCollective, .of_sends = false, .armed = false};
  std::latch both_probed(2);
  const auto function = [&](Communicator& communicator) {
    const Tensor tensor = filled(10'000, communicator.rank() == 0 ? 1 : -1);
    communicator.broadcast(tensor, 0);  // the first one also probes the network
    sends.armed = receives.armed = true;
    both_probed.arrive_and_wait();
    if (communicator.rank() == 0) {
      Work work = communicator.broadcast_async(tensor, 0);
      sends.reached.wait();
      receives.reached.wait();
      communicator.abort(Aborted("has no more time"));
      EXPECT_THROW(work.wait(), Aborted);
      tensor.fill(-1000);
      receives.over = true;
    } else {
      EXPECT_THROW(communicator.broadcast(tensor, 0), Aborted) << tensor.span<float>()[0];
    }
  };
  for_each_member(
      {2, 1}, function, {.timeout_seconds = 60}, [&](std::shared_ptr<Switchboard> board, int rank) {
        return std::make_unique<StallingTransport>(std::move(board), rank, rank == 0 ? &sends : &receives);
      });
}

/// The words of one node are bounded; those of its last member are what tells the calls apart.
TEST(Disagreement, SaysWhatTheOddOneOfManyMembersCalled) {
  for_each_member({2, 8}, [](Communicator& communicator) {
    const bool odd = communicator.rank() == communicator.size() - 1;
    const std::string action = odd ? "assigns w" : "assigns v" + std::string(140, 'v');
    PurposeOf purpose(odd ? 1 : 2, Caller::kMember, [&] {
      return PurposeWords{action, std::string(160, 'd')};
    });
    const CommunicationScope scope(communicator, {}, purpose);
    EXPECT_THAT([&] { communicator.barrier(); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("assigns v"), HasSubstr("assigns w"))));
  });
}

TEST(Disagreement, NamesTheOddOneOfManyNodes) {
  for (const int odd : {0, 6, 12}) {
    for_each_member({13, 1}, [odd](Communicator& communicator) {
      const Tensor tensor = Tensor::full({1}, DType::kFloat32, 1);
      communicator.all_reduce(tensor, ReduceOp::kSum);
      EXPECT_EQ(tensor.span<float>()[0], 13);
      const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
        if (communicator.rank() == odd) {
          communicator.barrier();
        } else {
          communicator.all_reduce(tensor, ReduceOp::kSum);
        }
      });
      EXPECT_THAT(text, HasSubstr(fmt::format("member {} (worker {}, host here)", odd, odd)));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, NetworkCommunicator,
                         ::testing::Values(Layout{2, 1}, Layout{2, 2}, Layout{3, 1}, Layout{3, 2},
                                           Layout{2, 3}),
                         [](const auto& instance) {
                           return fmt::format("{}x{}", instance.param.nodes, instance.param.members);
                         });

}  // namespace
}  // namespace cohort::testing
