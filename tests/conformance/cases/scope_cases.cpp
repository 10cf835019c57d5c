// Scopes inside of scopes.
#include <cohort/strategy/one_device_strategy.h>

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

}  // namespace
}  // namespace cohort::testing
