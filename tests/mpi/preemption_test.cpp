// Preemption of workers that are ranks.
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>

#include "mpi_main.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

class PreemptionOfRanks : public ::testing::Test {
 protected:
  PreemptionOfRanks() {
    // The first rank's folder, for all of them.
    const std::string own = ::testing::TempDir() + "cohort-preemption-" + std::to_string(::getpid());
    folder_ = session().exchange(own).front();
  }
  ~PreemptionOfRanks() override {
    (void)session().exchange("done");
    if (session().rank() == 0) std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(PreemptionOfRanks, Case136_ASignalAtOneSavesAll) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2})
    check_preemption(session(), folder_ + "/" + std::to_string(signal),
                     [&] { return preemption_by_signal(signal); });
}
TEST_F(PreemptionOfRanks, ByAFunctionOfOneSavesAll) {
  check_preemption(session(), folder_, preemption_by_watcher);
}
TEST_F(PreemptionOfRanks, IsSeenInTheLastSteps) {
  check_preemption_in_the_last_steps(session(), folder_, [] { return preemption_by_signal(SIGTERM); });
}
TEST_F(PreemptionOfRanks, Case137_TwoCheckpointsInAGracePeriod) {
  check_grace_period(session(), folder_, [] { return preemption_by_signal(SIGTERM); });
}
TEST_F(PreemptionOfRanks, EndsAllWhenAStepFails) { check_error_in_a_step(session(), folder_); }
TEST_F(PreemptionOfRanks, NeedsTheSameConfigOnAll) { check_other_config(session(), folder_); }

}  // namespace
}  // namespace cohort::testing
