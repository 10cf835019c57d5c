// The contract of distributed datasets, with workers that are threads.
#include "worker_contracts.h"

#include <functional>
#include <tuple>

#include <gmock/gmock.h>

#include "../strategy/fake_cluster.h"

namespace cohort::testing {
namespace {

class WorkersAndDevices : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  static void on_every_worker(void (*check)(Bootstrap&, int)) {
    const auto [workers, devices] = GetParam();
    for_each_worker(workers, [&, devices = devices](Bootstrap& worker) { check(worker, devices); });
  }
};

TEST_P(WorkersAndDevices, SeeEachElementOnce) { on_every_worker(check_each_element_once); }
TEST_P(WorkersAndDevices, TakeEqualSteps) { on_every_worker(check_equal_steps); }
TEST_P(WorkersAndDevices, TakeUpAPassAnywhere) { on_every_worker(check_positions); }
TEST_P(WorkersAndDevices, EndTogetherWhenOneCannotRead) { on_every_worker(check_failing_reader); }

INSTANTIATE_TEST_SUITE_P(Members, WorkersAndDevices,
                         ::testing::Values(std::tuple(1, 1), std::tuple(1, 3), std::tuple(2, 1),
                                           std::tuple(2, 2), std::tuple(3, 2), std::tuple(4, 1),
                                           std::tuple(7, 1)),
                         [](const auto& sizes) {
                           return std::to_string(std::get<0>(sizes.param)) + "x" +
                                  std::to_string(std::get<1>(sizes.param));
                         });

}  // namespace
}  // namespace cohort::testing
