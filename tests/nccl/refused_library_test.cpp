// A program whose NCCL library is refused. REFUSAL is the expected text of the error.
#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/nccl/library.h>
#include <cohort/strategy/mirrored_strategy.h>

#include "gpu_members.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

TEST(RefusedLibrary, IsNamedAndLeavesTheHostAlone) {
  const char* const refusal = std::getenv("REFUSAL");
  if (refusal == nullptr) GTEST_SKIP() << "the machine's own library may do";
  const std::string text = message_of(ErrorCode::kUnavailable, [] { static_cast<void>(nccl::library()); });
  EXPECT_THAT(text, ::testing::HasSubstr(refusal));
  EXPECT_THAT(text, ::testing::HasSubstr("COHORT_NCCL_LIBRARY"));

  const auto hosts = make_thread_communicators(2);
  const std::string same = message_of(
      ErrorCode::kUnavailable, [&] { static_cast<void>(nccl::make_communicators(hosts, first_gpus(2))); });
  EXPECT_EQ(same, "member 0 (worker 0, host " + hosts.front()->members().front().host + "): " + text);
  call_for_each(hosts, [](Communicator& host) { EXPECT_NO_THROW(host.barrier()); });
}

TEST(RefusedLibrary, IsAnErrorOnlyWhereNcclWasAskedForByName) {
  if (std::getenv("REFUSAL") == nullptr) GTEST_SKIP() << "the machine's own library may do";
  const MirroredStrategy strategy(first_gpus(2));
  EXPECT_EQ(strategy.extended().communicator(0).name(), "staged");
  const std::string text = message_of(ErrorCode::kUnavailable, [] {
    static_cast<void>(
        MirroredStrategy(first_gpus(2), {.implementation = CommunicationImplementation::kNccl}));
  });
  EXPECT_THAT(text, ::testing::HasSubstr("NCCL was asked for"));
  EXPECT_THAT(text, ::testing::HasSubstr(std::getenv("REFUSAL")));
}

}  // namespace
}  // namespace cohort::testing
