#include "device/machine.h"

#include <sched.h>

#include <algorithm>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

using Groups = std::vector<std::vector<int>>;

/// Cores 0 to count-1, the second half of them on another NUMA node.
std::vector<Core> cores(int count) {
  std::vector<Core> result;
  result.reserve(static_cast<std::size_t>(count));
  for (int core = 0; core < count; ++core) result.push_back({core, core < count / 2 ? 0 : 1});
  return result;
}

std::set<int> affinity_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::set<int> result;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) result.insert(core);
  }
  return result;
}

std::set<int> numbers_of(const std::vector<Core>& cores) {
  std::set<int> result;
  for (const Core& core : cores) result.insert(core.os_index);
  return result;
}

TEST(SplitCores, DealsThemOutInContiguousGroups) {
  EXPECT_EQ(split_cores(cores(8), 2), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(split_cores(cores(8), 4), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(split_cores(cores(3), 1), (Groups{{0, 1, 2}}));
}

TEST(SplitCores, MakesGroupsOfNearlyEqualSize) {
  for (int count = 1; count <= 12; ++count) {
    for (int devices = 1; devices <= count; ++devices) {
      const Groups groups = split_cores(cores(count), devices);
      ASSERT_THAT(groups, SizeIs(devices));
      int next = 0;
      for (const auto& group : groups) {
        EXPECT_LE(std::abs(static_cast<int>(group.size()) * devices - count), devices - 1);
        for (const int core : group) EXPECT_EQ(core, next++) << count << " cores, " << devices << " devices";
      }
      EXPECT_EQ(next, count) << "every core belongs to one device";
    }
  }
}

TEST(SplitCores, SharesThemWhenDevicesAreMoreThanCores) {
  EXPECT_EQ(split_cores(cores(2), 5), (Groups{{0}, {1}, {0}, {1}, {0}}));
}

TEST(SplitCores, RefusesNoDevicesAndCannotBeCalledWithoutCores) {
  EXPECT_THAT([] { return split_cores(cores(2), 0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("at least 1")));
  EXPECT_THROW(static_cast<void>(split_cores({}, 1)), Internal);
}

TEST(AllowedCores, AreThoseOfTheAffinityMaskByNumaNode) {
  const std::vector<Core> allowed = allowed_cores();
  EXPECT_THAT(allowed, SizeIs(Ge(1u)));
  EXPECT_EQ(numbers_of(allowed), affinity_of_this_thread());
  EXPECT_TRUE(std::is_sorted(allowed.begin(), allowed.end(),
                             [](const Core& a, const Core& b) { return a.numa_node < b.numa_node; }));
}

TEST(PinCurrentThread, RestrictsThisThreadAndNoOther) {
  const std::set<int> before = affinity_of_this_thread();
  std::thread([&] {
    const int core = *before.rbegin();
    pin_current_thread(std::vector<int>{core});
    EXPECT_THAT(affinity_of_this_thread(), ElementsAre(core));
    EXPECT_THAT(numbers_of(allowed_cores()), ElementsAre(core));
  }).join();
  EXPECT_EQ(affinity_of_this_thread(), before);
}

TEST(PinCurrentThread, ReportsCoresThatDoNotExist) {
  EXPECT_THAT([] { pin_current_thread(std::vector<int>{}); },
              ThrowsMessage<Unavailable>(HasSubstr("cannot pin")));
}

TEST(ShareOfCores, SplitsWhatSeveralMayRunOn) {
  const std::vector<Core> cores{{0, 0}, {1, 0}, {2, 1}, {3, 1}};
  const std::vector<int> all{0, 1, 2, 3};
  const std::vector<std::vector<int>> unbound{all, all};
  EXPECT_EQ(share_of_cores(unbound, 0, cores), (std::vector<int>{0, 1}));
  EXPECT_EQ(share_of_cores(unbound, 1, cores), (std::vector<int>{2, 3}));
}

TEST(ShareOfCores, LeavesABindingAlone) {
  const std::vector<Core> cores{{2, 0}, {3, 0}};
  const std::vector<std::vector<int>> bound{{0, 1}, {2, 3}};
  EXPECT_TRUE(share_of_cores(bound, 1, cores).empty());
  // Two of three on one socket share it.
  const std::vector<std::vector<int>> by_socket{{0, 1}, {2, 3}, {2, 3}};
  EXPECT_EQ(share_of_cores(by_socket, 2, cores), (std::vector<int>{3}));
}

TEST(ShareOfCores, IsNothingWhereThereAreTooFew) {
  const std::vector<Core> cores{{0, 0}};
  EXPECT_TRUE(share_of_cores(std::vector<std::vector<int>>{{0}, {0}}, 1, cores).empty());
}

}  // namespace
}  // namespace cohort
