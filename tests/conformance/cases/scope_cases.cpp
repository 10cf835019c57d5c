// Scopes inside scopes.
#include <optional>

#include <cohort/strategy/one_device_strategy.h>
#include <cohort/value/device_scope.h>
#include <cohort/value/variable_creator_scope.h>

#include "replicas.h"

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ScopeCase : public Replicas {};
COHORT_INSTANTIATE_CASES(ScopeCase);

TEST_P(ScopeCase, Case106_MayBeEnteredAgainButNotAnothers) {
  const auto first = strategy_.scope();
  {
    const auto second = strategy_.scope();
    const auto third = strategy_.scope();
    EXPECT_EQ(get_strategy(), strategy_);
  }
  EXPECT_EQ(get_strategy(), strategy_);
  EXPECT_THAT([] { return OneDeviceStrategy().scope(); },
              ThrowsMessage<WrongContext>(HasSubstr("mixing different strategies")));
  EXPECT_EQ(get_strategy(), strategy_);
}

/// Tests leave no strategy behind.
class SetStrategyCase : public Replicas {
 protected:
  void TearDown() override { set_strategy(std::nullopt); }

  /// Inside whatever scope the caller has open.
  void expect_refused() const {
    const auto refused = ThrowsMessage<WrongContext>(HasSubstr("set_strategy was called inside a scope"));
    EXPECT_THAT([] { set_strategy(std::nullopt); }, refused);
    EXPECT_THAT([&] { set_strategy(strategy_); }, refused);
  }
};
COHORT_INSTANTIATE_CASES(SetStrategyCase);

TEST_P(SetStrategyCase, Case107_IsRefusedInsideScopes) {
  for (const bool is_set : {false, true}) {
    if (is_set) set_strategy(strategy_);
    {
      const auto scope = strategy_.scope();
      expect_refused();
    }
    {
      const DeviceScope device(Device::cpu(0));
      expect_refused();
    }
    {
      const VariableCreatorScope creator(
          [](const NextCreator& next, VariableOptions options) { return next(std::move(options)); });
      expect_refused();
    }
    strategy_.run([&] { expect_refused(); });
    EXPECT_EQ(has_strategy(), is_set);
    EXPECT_EQ(strategy_.reduce(ReduceOp::kSum, each([](int) { return 1; })), replicas());
  }
}

}  // namespace
}  // namespace cohort::testing
