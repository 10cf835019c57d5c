// Options of single calls over ranks, whatever the Session's communicators are.
#include <gtest/gtest.h>

#include <cohort/base/config.h>

#include "communicator_contracts.h"
#include "rank_values.h"

namespace cohort {
namespace {

TEST(CallOptionsOverRanks, AllowAShorterDeadline) {
  const auto communicator = make_communicator(60);
  testing::check_shorter_deadline(*communicator);
  meet();
}

TEST(CallOptionsOverRanks, AllowALongerDeadline) { testing::check_longer_deadline(*make_communicator(0.05)); }

TEST(CallOptionsOverRanks, LetUrgentCallsOvertake) {
  // MPI's own collectives do not yield.
  testing::check_urgent_calls(*make_communicator(), config().algorithm() != "mpi");
}

TEST(CallOptionsOverRanks, NeedTheSamePriorityEverywhere) {
  const auto first = make_communicator();
  testing::check_priority_mismatch(*first);
  const auto second = make_communicator();
  testing::check_order_mismatch(*second);
  meet();
}

TEST(CallOptionsOverRanks, NameTheMissingMemberOfAnUrgentCall) {
  const auto communicator = make_communicator();
  testing::check_missing_in_urgent_call(*communicator);
  meet();
}

}  // namespace
}  // namespace cohort
