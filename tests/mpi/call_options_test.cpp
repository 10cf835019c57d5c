// Options of single calls over ranks, whatever the Session's communicators are.
#include <gtest/gtest.h>

#include "call_options_contract.h"
#include "rank_values.h"

namespace cohort {
namespace {

TEST(CallOptionsOverRanks, AllowAShorterDeadline) {
  const auto communicator = make_communicator(60);
  testing::check_shorter_deadline(*communicator);
  meet();
}

TEST(CallOptionsOverRanks, AllowALongerDeadline) { testing::check_longer_deadline(*make_communicator(0.2)); }

}  // namespace
}  // namespace cohort
