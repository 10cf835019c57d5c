// Lists as Slurm prints them, and malformed ones.
#include "resolvers/slurm_lists.h"

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

auto hosts(std::string_view list) {
  return [list] { return expand_host_list(list); };
}
auto tasks(std::string_view list) {
  return [list] { return expand_tasks_per_node(list); };
}

TEST(HostList, ExpandsRangesInOrder) {
  EXPECT_THAT(expand_host_list("n[1-2],m5,o[3-4,6,7-9]"),
              ElementsAre("n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"));
  EXPECT_THAT(expand_host_list("b,a,b"), ElementsAre("b", "a", "b"));
  EXPECT_THAT(expand_host_list(""), IsEmpty());
  EXPECT_THAT(expand_host_list("n[1-2],"), ElementsAre("n1", "n2"));
}

TEST(HostList, KeepsZeros) {
  EXPECT_THAT(expand_host_list("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expand_host_list("n[9-11]"), ElementsAre("n9", "n10", "n11"));
}

TEST(HostList, TakesNamesThatGoOnAfterABracket) {
  EXPECT_THAT(expand_host_list("a[1-2]b"), ElementsAre("a1b", "a2b"));
  EXPECT_THAT(expand_host_list("r[1-2]n[0,3]"), ElementsAre("r1n0", "r1n3", "r2n0", "r2n3"));
}

TEST(HostList, SaysWhereItIsWrong) {
  EXPECT_THAT(hosts("n[1-"),
              ThrowsMessage<InvalidArgument>(
                  AllOf(HasSubstr("character 5"), HasSubstr("a number is missing"), HasSubstr("n[1-"))));
  EXPECT_THAT(hosts("n[1-2"), ThrowsMessage<InvalidArgument>(HasSubstr("']' is missing")));
  EXPECT_THAT(hosts("n1-2]"), ThrowsMessage<InvalidArgument>(HasSubstr("']' has no '['")));
  EXPECT_THAT(hosts("n[3-1]"), ThrowsMessage<InvalidArgument>(HasSubstr("3-1 runs backwards")));
  EXPECT_THAT(hosts("n[a-b]"), ThrowsMessage<InvalidArgument>(HasSubstr("character 3")));
  EXPECT_THAT(hosts(",n1"), ThrowsMessage<InvalidArgument>(HasSubstr("a host name is missing")));
  EXPECT_THAT(hosts("n[1 -2]"), ThrowsMessage<InvalidArgument>(HasSubstr("character 4")));
  EXPECT_THAT(hosts("n1 ,n2"), ThrowsMessage<InvalidArgument>(HasSubstr("no spaces")));
}

TEST(HostList, RefusesMoreHostsThanThereAre) {
  EXPECT_THAT(expand_host_list("n[1-250000]"), SizeIs(250000));
  EXPECT_THAT(hosts("n[0-250000]"), ThrowsMessage<InvalidArgument>(HasSubstr("more than 250000")));
  EXPECT_THAT(hosts("n[0-999]m[0-999]k[0-9]"), ThrowsMessage<InvalidArgument>(HasSubstr("more than")));
  EXPECT_THAT(hosts("n[1-99999999999]"), ThrowsMessage<InvalidArgument>(HasSubstr("too large")));
}

TEST(HostList, RefusesNamesThatAreTooLong) {
  const std::string longest(253, 'n');
  const std::string longer = longest + "m";
  const std::string longer_by_bracket = longest + "[1-2]";
  EXPECT_THAT(expand_host_list(longest), SizeIs(1));
  EXPECT_THAT(hosts(longer), ThrowsMessage<InvalidArgument>(HasSubstr("at most 253")));
  EXPECT_THAT(hosts(longer_by_bracket), ThrowsMessage<InvalidArgument>(HasSubstr("at most 253")));
}

TEST(TasksPerNode, RepeatsWhatIsRepeated) {
  EXPECT_THAT(expand_tasks_per_node("3(x2),2,11(x4)"), ElementsAre(3, 3, 2, 11, 11, 11, 11));
  EXPECT_THAT(expand_tasks_per_node("1"), ElementsAre(1));
  EXPECT_THAT(expand_tasks_per_node("3(x0)"), IsEmpty());
}

TEST(TasksPerNode, SaysWhereItIsWrong) {
  EXPECT_THAT(tasks(""), ThrowsMessage<InvalidArgument>(HasSubstr("a number is missing")));
  EXPECT_THAT(tasks("a"), ThrowsMessage<InvalidArgument>(HasSubstr("character 1")));
  EXPECT_THAT(tasks("3x2"), ThrowsMessage<InvalidArgument>(HasSubstr("a comma is missing")));
  EXPECT_THAT(tasks("2(x2)2"), ThrowsMessage<InvalidArgument>(HasSubstr("character 6")));
  EXPECT_THAT(tasks("2(x"), ThrowsMessage<InvalidArgument>(HasSubstr("a number is missing")));
  EXPECT_THAT(tasks("1(x2000000)"), ThrowsMessage<InvalidArgument>(HasSubstr("more than")));
}

}  // namespace
}  // namespace cohort::testing
