#include "call_options_contract.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

bool is_last(const Communicator& communicator) { return communicator.rank() == communicator.size() - 1; }

}  // namespace

void check_shorter_deadline(Communicator& communicator) {
  const Tensor tensor = Tensor::zeros({3}, DType::kFloat32);
  communicator.all_reduce(tensor, ReduceOp::kSum, {.timeout_seconds = 20});
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { communicator.barrier({.timeout_seconds = -1}); }),
              HasSubstr("barrier: timeout_seconds is -1"));
  if (communicator.size() == 1 || is_last(communicator)) return;
  const auto start = std::chrono::steady_clock::now();
  const std::string text = message_of(ErrorCode::kDeadlineExceeded, [&] {
    communicator.all_reduce(tensor, ReduceOp::kSum, {.timeout_seconds = 0.2});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, 10s) << "not at the communicator's deadline";
  EXPECT_THAT(text, HasSubstr(fmt::format("missing: member {} ", communicator.size() - 1)));
  EXPECT_THAT(text, HasSubstr("s (set for this call) passed"));
  EXPECT_THAT(text, HasSubstr("all_reduce #1"));
}

void check_longer_deadline(Communicator& communicator) {
  for (const double seconds : {0., 20.}) {
    // Time itself is what is tested: the communicator's own time-out passes.
    if (is_last(communicator)) std::this_thread::sleep_for(600ms);
    EXPECT_NO_THROW(communicator.barrier({.timeout_seconds = seconds}));
    if (is_last(communicator)) std::this_thread::sleep_for(600ms);
    EXPECT_NO_THROW(communicator.barrier_async({.timeout_seconds = seconds}).wait());
  }
}

}  // namespace cohort::testing
