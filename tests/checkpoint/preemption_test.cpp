// Preemption of one worker, and of several that are threads of this process.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>

#include <cohort/base/deadline.h>

#include "../strategy/fake_cluster.h"
#include "../strategy/strategies.h"
#include "checkpoint/preemption/preemption_notices.h"
#include "temporary_folder.h"
#include "worker_contracts.h"

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PreemptionOfThreads : public ::testing::TestWithParam<int> {
 protected:
  template <class Check, class... Args>
  void on_every_worker(Check check, Args... args) {
    for_each_worker(GetParam(),
                    [&](Bootstrap& worker) { check(worker, folder_.path("checkpoints"), args...); });
  }
  const TemporaryFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Workers, PreemptionOfThreads, ::testing::Values(1, 2, 3, 4, 5),
                         ::testing::PrintToStringParamName());

TEST_P(PreemptionOfThreads, SavesTheSameStepAndGoesOnFromIt) {
  on_every_worker(check_preemption, preemption_by_watcher);
}
TEST_P(PreemptionOfThreads, IsSeenInTheLastSteps) {
  on_every_worker(check_preemption_in_the_last_steps, preemption_by_watcher);
}
TEST_P(PreemptionOfThreads, GoesOnUntilTheGracePeriodIsOver) {
  on_every_worker(check_grace_period, preemption_by_watcher);
}
TEST_P(PreemptionOfThreads, EndsAllWhenAStepFails) { on_every_worker(check_error_in_a_step); }
TEST_P(PreemptionOfThreads, NeedsTheSameConfigOnAll) { on_every_worker(check_other_config); }

class PreemptionOfOneWorker : public ::testing::Test {
 protected:
  PreemptionOfOneWorker() { checkpoint_.add("value", value_); }

  [[nodiscard]] std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> steps;
    for (const FoundCheckpoint& found : list_checkpoints(path_)) steps.push_back(found.step);
    return steps;
  }

  /// Adds 1 in each of 8 steps. SIGTERM comes in step `at`.
  void train(PreemptionCheckpointHandler& handler, std::int64_t at) {
    while (handler.total_run_calls() < 8) {
      handler.run([&] {
        if (handler.total_run_calls() == at) std::raise(SIGTERM);
        ++value_;
      });
    }
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("checkpoints");
  std::int64_t value_ = 0;
  Checkpoint checkpoint_;
};

TEST_F(PreemptionOfOneWorker, SavesAfterOneMoreStep) {
  PreemptionCheckpointHandler handler(checkpoint_, path_);
  try {
    train(handler, 3);
    FAIL() << "it trains on";
  } catch (const Preempted& preempted) {
    EXPECT_THAT(preempted.what(), HasSubstr("the state after 5 steps is saved as '" + path_ + "/step-5'"));
  }
  EXPECT_EQ(value_, 5);
  EXPECT_THAT(steps(), ElementsAre(5));
}

TEST_F(PreemptionOfOneWorker, HasAnyOfThreeSignals) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGUSR2}) {
    PreemptionCheckpointHandler handler(checkpoint_, path_);
    handler.run([&] { std::raise(signal); });
    handler.run([] {});
    EXPECT_THROW(handler.run([] {}), Preempted);
  }
  EXPECT_THAT(steps(), ElementsAre(6));
}

TEST_F(PreemptionOfOneWorker, EndsAsTheConfigSays) {
  struct Left {};
  PreemptionCheckpointHandler throwing(checkpoint_, path_, {.exit_fn = [] { throw Left(); }});
  EXPECT_THROW(train(throwing, 0), Left);
  int exits = 0;
  PreemptionCheckpointHandler returning(checkpoint_, path_ + "2",
                                        {.exit_fn = [&] { ++exits; }, .exit_code = 7});
  try {
    train(returning, 0);
  } catch (const Preempted& preempted) {
    EXPECT_EQ(preempted.exit_code(), 7);
  }
  EXPECT_EQ(exits, 1);
}

TEST_F(PreemptionOfOneWorker, SavesAsTheConfigSays) {
  std::int64_t saved = 0;
  PreemptionCheckpointHandler handler(checkpoint_, path_, {.save_fn = [&] { saved = value_; }});
  EXPECT_THROW(train(handler, 2), Preempted);
  EXPECT_EQ(saved, 4);
  EXPECT_THAT(steps(), IsEmpty());
}

TEST_F(PreemptionOfOneWorker, TakesTheCheckpointThatTheProgramHasJustSaved) {
  CheckpointManager manager(checkpoint_, path_);
  PreemptionCheckpointHandler handler(manager);
  handler.run([] { std::raise(SIGTERM); });
  handler.run([] {});
  manager.save(2);
  EXPECT_THROW(handler.run([] {}), Preempted);
  EXPECT_THAT(steps(), ElementsAre(2));
}

TEST_F(PreemptionOfOneWorker, WaitsForTheCheckpointThatIsBeingSaved) {
  CheckpointManager manager(checkpoint_, path_);
  PreemptionCheckpointHandler handler(manager);
  handler.run([] { std::raise(SIGTERM); });
  handler.run([] {});
  manager.save_async(2);
  EXPECT_THROW(handler.run([] {}), Preempted);
  EXPECT_THAT(verify_checkpoint(path_ + "/step-2"), IsEmpty());
}

TEST_F(PreemptionOfOneWorker, SavesWhereASaveInTheBackgroundFails) {
  CheckpointManager manager(checkpoint_, path_);
  PreemptionCheckpointHandler handler(manager);
  handler.run([] { std::raise(SIGTERM); });
  handler.run([] {});
  (void)folder_.file("checkpoints/step-1", "");  // in the way
  manager.save_async(1);
  EXPECT_THROW(handler.run([] {}), Preempted);
  EXPECT_THAT(verify_checkpoint(path_ + "/step-2"), IsEmpty());
}

TEST_F(PreemptionOfOneWorker, IsCountedWithoutRun) {
  PreemptionCheckpointHandler handler(checkpoint_, path_);
  handler.save_checkpoint_if_preempted();
  std::raise(SIGTERM);
  handler.save_checkpoint_if_preempted();
  EXPECT_EQ(handler.total_run_calls(), 2);
  EXPECT_THROW(handler.save_checkpoint_if_preempted(), Preempted);
  EXPECT_THAT(steps(), ElementsAre(2));
}

TEST_F(PreemptionOfOneWorker, ComesBeforeTheEndOfTheJob) {
  const auto now = std::chrono::system_clock::now();
  PreemptionCheckpointHandler near(checkpoint_, path_, {.end_time = now});
  EXPECT_THROW(train(near, -1), Preempted);
  EXPECT_EQ(value_, 1);
  // Training must come further than that, however short the time is.
  PreemptionCheckpointHandler far(checkpoint_, path_ + "2",
                                  {.end_time = now + std::chrono::hours(1), .seconds_before_end = 7200});
  train(far, -1);
  EXPECT_EQ(far.total_run_calls(), 8);
}

TEST_F(PreemptionOfOneWorker, LearnsTheEndOfTheJobFromSlurm) {
  ::unsetenv("SLURM_JOB_END_TIME");
  EXPECT_FALSE(TerminationConfig().end_time.has_value());
  ::setenv("SLURM_JOB_END_TIME", "1700000000", 1);
  EXPECT_EQ(TerminationConfig().end_time, std::chrono::system_clock::from_time_t(1700000000));
  ::setenv("SLURM_JOB_END_TIME", "soon", 1);
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [] { (void)TerminationConfig(); }),
              HasSubstr("SLURM_JOB_END_TIME is 'soon'"));
  ::unsetenv("SLURM_JOB_END_TIME");
}

TEST_F(PreemptionOfOneWorker, AsksSlurmForTheEndOfTheJob) {
  const TemporaryFolder folder;
  const auto answers = [&](const std::string& script) {
    const std::string squeue = folder.file("squeue", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(squeue, std::filesystem::perms::owner_all);
    return ask_slurm_for_end_time(
        {{"SLURM_JOB_ID", "7"}, {"SLURM_TIME_FORMAT", "relative"}, {"PATH", "/bin:/usr/bin"}},
        std::chrono::milliseconds(500));
  };
  // posix_spawnp looks in this process's own path.
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  EXPECT_EQ(answers(R"([ "$*" = "--noheader --jobs=7 --format=%e" ] && [ "$SLURM_TIME_FORMAT" = %s ] &&
                       echo 1700000000)"),
            1'700'000'000);
  EXPECT_EQ(answers("echo NONE"), std::nullopt);
  EXPECT_EQ(answers("echo 2026-11-28T04:05:06"), std::nullopt);
  EXPECT_EQ(answers("exit 1"), std::nullopt);
  const Deadline soon = Deadline::after(std::chrono::seconds(10));
  EXPECT_EQ(answers("exec sleep 60"), std::nullopt);
  EXPECT_FALSE(soon.expired());
  ::setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(answers("echo 1700000000"), std::nullopt);
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(ask_slurm_for_end_time({}), std::nullopt) << "no job of Slurm's";
}

TEST_F(PreemptionOfOneWorker, PassesOnWhatAStepTakesReturnsAndThrows) {
  PreemptionCheckpointHandler handler(checkpoint_, path_);
  EXPECT_EQ(handler.run([](int a, int b) { return a + b; }, 2, 5), 7);
  EXPECT_THROW(handler.run([] { throw std::runtime_error("no"); }), std::runtime_error);
  EXPECT_EQ(handler.total_run_calls(), 1);
  EXPECT_EQ(handler.watch_preemption_scope([] { return 3; }), 3);
  EXPECT_EQ(handler.total_run_calls(), 1);
}

TEST_F(PreemptionOfOneWorker, SaysThatTheWatcherHasFailed) {
  std::atomic<bool> asked{false};
  PreemptionCheckpointHandler handler(checkpoint_, path_, {.termination_watcher_fn = [&]() -> bool {
                                        asked = true;
                                        throw std::runtime_error("no route to host");
                                      }});
  EXPECT_THROW(
      {
        while (true) handler.run([] { std::this_thread::yield(); });
      },
      std::runtime_error);
  EXPECT_TRUE(asked);
}

TEST_F(PreemptionOfOneWorker, RefusesWrongValues) {
  const auto refused = [&](const TerminationConfig& config, const char* why) {
    EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                           [&] { const PreemptionCheckpointHandler handler(checkpoint_, path_, config); }),
                HasSubstr(why));
  };
  refused({.grace_period = -1}, "grace_period is -1");
  refused({.signals = {SIGKILL}}, "signal 9 cannot announce a preemption");
  refused({.signals = {SIGUSR1, 1000}}, "there is no such signal");
  refused({.watcher_interval_seconds = 0}, "watcher_interval_seconds is 0");
  refused({.seconds_before_end = -2}, "seconds_before_end is -2");
  refused({.exit_code = 256}, "exit_code is 256");
}

void count_signal(int) {}

TEST_F(PreemptionOfOneWorker, GivesSignalsBack) {
  const auto handler_of = [](int signal) {
    struct sigaction current {};
    ::sigaction(signal, nullptr, &current);
    return current.sa_handler;
  };
  std::signal(SIGUSR1, count_signal);
  std::signal(SIGTERM, SIG_DFL);
  {
    const PreemptionCheckpointHandler outer(checkpoint_, path_);
    { const PreemptionCheckpointHandler inner(checkpoint_, path_ + "2"); }
    EXPECT_NE(handler_of(SIGUSR1), &count_signal);
    EXPECT_NE(handler_of(SIGTERM), SIG_DFL);
  }
  EXPECT_EQ(handler_of(SIGUSR1), &count_signal);
  EXPECT_EQ(handler_of(SIGTERM), SIG_DFL);
  {
    const PreemptionCheckpointHandler handler(checkpoint_, path_);
    std::signal(SIGUSR1, SIG_IGN);  // from here on the program's
  }
  EXPECT_EQ(handler_of(SIGUSR1), SIG_IGN);
  std::signal(SIGUSR1, SIG_DFL);
}

TEST_F(PreemptionOfOneWorker, IsNotDisturbedByLaterSignals) {
  std::signal(SIGTERM, SIG_DFL);
  {
    PreemptionCheckpointHandler handler(checkpoint_, path_);
    EXPECT_THROW(train(handler, 0), Preempted);
  }
  std::raise(SIGTERM);
}

TEST_F(PreemptionOfOneWorker, LetsSignalsEndAForkedChild) {
  const PreemptionCheckpointHandler handler(checkpoint_, path_);
  const pid_t child = ::fork();
  if (child == 0) {
    std::raise(SIGTERM);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace cohort::testing
