// Ranks that leave before the others.
#include <functional>
#include <optional>

#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "mpi_main.h"
#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;

/// All ranks make a variable and reduce; then the last one leaves, and the others make `call`.
void expect_failure_after_departure(const std::function<void(const Strategy&)>& call) {
  if (session().size() == 1) GTEST_SKIP() << "nobody is left";
  std::optional<MultiWorkerMirroredStrategy> strategy(std::in_place, session(),
                                                      CommunicationOptions{.timeout_seconds = 20});
  {
    const auto scope = strategy->scope();
    const Variable first({.name = "first"});
    EXPECT_EQ(strategy->reduce(ReduceOp::kSum, 1), session().size());
  }
  if (session().rank() == session().size() - 1) return;
  try {
    call(*strategy);
    ADD_FAILURE() << "the last rank was not missed";
  } catch (const Error& error) {
    EXPECT_THAT(error.code(),
                AnyOf(Eq(ErrorCode::kAborted), Eq(ErrorCode::kUnavailable), Eq(ErrorCode::kDeadlineExceeded)))
        << error.what();
  }
}

TEST(DepartureCase, Case134_BeforeTheSecondVariable) {
  expect_failure_after_departure([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable second({.name = "second"});
  });
}

TEST(DepartureCase, Case134_BeforeTheSecondReduction) {
  expect_failure_after_departure(
      [](const Strategy& strategy) { static_cast<void>(strategy.reduce(ReduceOp::kSum, 1)); });
}

}  // namespace
}  // namespace cohort::testing
