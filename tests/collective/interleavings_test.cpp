// Collectives in flight on several communicators of threads at once, in random order.
#include "communicator_contracts.h"

#include <thread>

#include <gtest/gtest.h>

#include <cohort/collective/thread_communicator.h>

namespace cohort::testing {
namespace {

class ThreadInterleavings : public ::testing::TestWithParam<int> {
 protected:
  static void run_seeds(WaitOrder order) {
    const int members = GetParam();
    for (unsigned seed = 1; seed <= 5; ++seed) {
      std::vector<std::vector<std::unique_ptr<Communicator>>> by_member(static_cast<std::size_t>(members));
      for (int i = 0; i < 3; ++i) {
        auto communicators = make_thread_communicators(members, {});
        for (std::size_t member = 0; member < by_member.size(); ++member) {
          by_member[member].push_back(std::move(communicators[member]));
        }
      }
      std::vector<std::thread> threads;
      threads.reserve(by_member.size());
      for (auto& own : by_member) {
        threads.emplace_back([&own, seed, order] {
          add_groups(own);
          check_interleaved(own, seed, order);
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Members, ThreadInterleavings, ::testing::Values(1, 2, 3, 4, 7));

TEST_P(ThreadInterleavings, WaitedForInTheSameOrder) { run_seeds(WaitOrder::kSame); }
TEST_P(ThreadInterleavings, PolledInAnyOrder) { run_seeds(WaitOrder::kPolled); }
TEST_P(ThreadInterleavings, WaitedForInAnyOrder) { run_seeds(WaitOrder::kOwn); }

}  // namespace
}  // namespace cohort::testing
