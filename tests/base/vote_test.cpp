#include "base/vote.h"

#include <gmock/gmock.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(Votes, NameThoseWhoseAnswerIsNotThatOfMost) {
  const Vote vote = count_votes(std::vector<std::string>{"a", "b", "b", "c", "b"});
  EXPECT_THAT(vote.odd, ElementsAre(0, 3));
  EXPECT_EQ(vote.usual, 1U);
  EXPECT_EQ(vote.usual_count, 3U);
  EXPECT_FALSE(vote.is_unanimous());
}

TEST(Votes, TakeTheFirstOfEquallyFrequentAnswersForUsual) {
  EXPECT_THAT(count_votes(std::vector{3, 1, 1, 3}).odd, ElementsAre(1, 2));
  EXPECT_THAT(count_votes(std::vector{1, 2, 3}).odd, ElementsAre(1, 2));
}

TEST(Votes, AreUnanimousWhereAllAnswersAreOne) {
  const Vote vote = count_votes(std::vector{7, 7, 7});
  EXPECT_THAT(vote.odd, IsEmpty());
  EXPECT_EQ(vote.usual_count, 3U);
  EXPECT_TRUE(count_votes(std::vector<int>{}).is_unanimous());
}

TEST(Votes, MayBeAboutAPartOfAnAnswer) {
  struct Answer {
    int member;
    char said;
  };
  const std::vector<Answer> answers{{0, 'x'}, {1, 'y'}, {2, 'x'}};
  EXPECT_THAT(count_votes(answers, &Answer::said).odd, ElementsAre(1));
}

TEST(FirstDifference, IsALineOrTheEnd) {
  EXPECT_THAT(first_difference("a\nb\n", "a\nc\n", "no more"), Pair("b", "c"));
  EXPECT_THAT(first_difference("a\n", "a\nc\n", "no more"), Pair("no more", "c"));
}

}  // namespace
}  // namespace cohort
