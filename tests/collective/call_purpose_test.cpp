// What a call is for, as it reaches other members.
#include <cohort/collective/call_purpose.h>

#include <string>

#include <gmock/gmock.h>

namespace cohort::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CallWords assigns(const std::string& name) {
  return {Caller::kReplica, "cpu:1", {"assigns " + name, "variable number 3"}};
}

TEST(CallWords, ReachOthersAsALine) {
  const CallWords words = from_line(to_line(assigns("w")));
  EXPECT_EQ(words.caller, Caller::kReplica);
  EXPECT_EQ(words.device, "cpu:1");
  EXPECT_EQ(words.purpose.action, "assigns w");
  EXPECT_EQ(words.purpose.details, "variable number 3");
  EXPECT_EQ(to_line({}), "");
  EXPECT_EQ(from_line("").purpose.action, "");
}

// Names come from the program: lines follow one another in what leaders tell each other.
TEST(CallWords, StayOneLineWhateverNamesHold) {
  const std::string line = to_line(assigns("w\n99999999 x\x1fy"));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  EXPECT_EQ(from_line(line).purpose.action, "assigns w 99999999 x y");
  EXPECT_EQ(from_line(line).purpose.details, "variable number 3");
}

TEST(CallWords, AreShortenedWhereTheyAreLong) {
  EXPECT_LT(to_line(assigns(std::string(10'000, 'w'))).size(), 400u);
}

TEST(APurpose, IsPutInWordsOnceForAllCallsThatOutliveIt) {
  int times = 0;
  const PurposeOf purpose(7, Caller::kWorker, [&] {
    ++times;
    return PurposeWords{"reads v"};
  });
  EXPECT_EQ(times, 0);
  const auto spoken = purpose.spoken();
  EXPECT_EQ(purpose.spoken(), spoken);
  EXPECT_EQ(spoken->spoken(), spoken);
  EXPECT_EQ(times, 1);
  EXPECT_EQ(spoken->fingerprint(), 7u);
  EXPECT_EQ(spoken->words().purpose.action, "reads v");
}

}  // namespace
}  // namespace cohort::testing
