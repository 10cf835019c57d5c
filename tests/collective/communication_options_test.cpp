// What options mean, which of them take precedence, and what they change about a call.
#include <cohort/collective/communication_options.h>

#include <limits>

#include <gmock/gmock.h>

#include <cohort/collective/communication_scope.h>

#include "members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Implementation = CommunicationImplementation;

TEST(CommunicationOptions, LeaveEverythingToOthersByDefault) {
  const CommunicationOptions options;
  EXPECT_EQ(options.bytes_per_pack, 0);
  EXPECT_EQ(options.timeout_seconds, std::nullopt);
  EXPECT_EQ(options.implementation, Implementation::kAuto);
}

TEST(CommunicationOptions, NameImplementationsInAnyCase) {
  EXPECT_EQ(parse_communication_implementation("RING"), Implementation::kRing);
  EXPECT_EQ(parse_communication_implementation("ring"), Implementation::kRing);
  EXPECT_EQ(parse_communication_implementation("Nccl"), Implementation::kNccl);
  EXPECT_EQ(parse_communication_implementation(to_string(Implementation::kAuto)), Implementation::kAuto);
  EXPECT_THAT([] { return parse_communication_implementation("x"); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'x'"), HasSubstr("auto, ring, nccl"))));
}

TEST(CommunicationOptions, MergeTakesWhatTheOtherSays) {
  const CommunicationOptions options{
      .timeout_seconds = 5, .bytes_per_pack = 10, .implementation = Implementation::kNccl};
  const CommunicationOptions same = options.merge({});
  EXPECT_EQ(same.bytes_per_pack, 10);
  EXPECT_EQ(same.timeout_seconds, 5);
  EXPECT_EQ(same.implementation, Implementation::kNccl);
  const CommunicationOptions other =
      options.merge({.bytes_per_pack = 20, .implementation = Implementation::kRing});
  EXPECT_EQ(other.bytes_per_pack, 20);
  EXPECT_EQ(other.timeout_seconds, 5);
  EXPECT_EQ(other.implementation, Implementation::kRing);
  EXPECT_EQ(options.merge({.timeout_seconds = 0}).timeout_seconds, 0) << "for ever is a wish too";
}

TEST(CommunicationOptions, RefuseNegativeNumbers) {
  const auto refused = [](const CommunicationOptions& options, const char* why) {
    EXPECT_THAT([&] { options.validate(); }, ThrowsMessage<InvalidArgument>(HasSubstr(why)));
    EXPECT_THROW(static_cast<void>(options.deadline()), InvalidArgument);
  };
  refused({.timeout_seconds = -1}, "timeout_seconds is -1");
  refused({.timeout_seconds = std::numeric_limits<double>::quiet_NaN()}, "timeout_seconds is nan");
  const int negative = -1;
  refused({.bytes_per_pack = static_cast<std::size_t>(negative)}, "bytes_per_pack is -1");
  EXPECT_TRUE(CommunicationOptions{.timeout_seconds = 0}.deadline().is_never());
}

TEST(CommunicationScope, LastUntilTheirScopeEnds) {
  const auto communicators = make_thread_communicators(1, {.timeout_seconds = 5});
  Communicator& communicator = *communicators.front();
  {
    const CommunicationScope ring(communicator, {.implementation = Implementation::kRing});
    const CommunicationScope patient(communicator, {.timeout_seconds = 0});
    EXPECT_EQ(communicator.options().timeout_seconds, 0);
    EXPECT_EQ(communicator.options().implementation, Implementation::kRing);
  }
  EXPECT_EQ(communicator.options().timeout_seconds, 5);
  EXPECT_EQ(communicator.options().implementation, Implementation::kAuto);
  EXPECT_THROW(static_cast<void>(CommunicationScope(communicator, {.timeout_seconds = -1})), InvalidArgument);
}

TEST(CommunicationScope, DecideHowLongACallWaits) {
  for_each_member(3,
                  [](Communicator& communicator) {
                    if (communicator.rank() == 2) return;
                    const CommunicationScope impatient(communicator, {.timeout_seconds = 0.2});
                    EXPECT_THAT(message_of(ErrorCode::kDeadlineExceeded, [&] { communicator.barrier(); }),
                                HasSubstr("member 2"));
                  },
                  {.timeout_seconds = 3600});
}

TEST(CommunicationScope, OfMembersMustNameTheSameImplementation) {
  for_each_member(3, [](Communicator& communicator) {
    const Tensor tensor = Tensor::zeros({4}, DType::kFloat32);
    const CommunicationScope options(
        communicator,
        {.implementation = communicator.rank() == 1 ? Implementation::kRing : Implementation::kAuto});
    EXPECT_THAT(
        message_of(ErrorCode::kInvalidArgument, [&] { communicator.all_reduce(tensor, ReduceOp::kSum); }),
        HasSubstr("member 1"));
  });
}

}  // namespace
}  // namespace cohort::testing
