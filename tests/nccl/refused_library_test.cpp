// A program whose NCCL does not do. REFUSAL has what the error has to say.
#include <cstdlib>

#include <gmock/gmock.h>

#include <cohort/nccl/library.h>

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

}  // namespace
}  // namespace cohort::testing
