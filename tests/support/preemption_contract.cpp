#include "worker_contracts.h"

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>

#include <gmock/gmock.h>

#include <cohort/checkpoint/checkpoint_folder.h>
#include <cohort/checkpoint/preemption_checkpoint_handler.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "thrown.h"

namespace cohort::testing {
namespace {

constexpr CommunicationOptions kPatience{.timeout_seconds = 60};

/// A job that adds 1 in each step, on every worker.
class Job {
 public:
  Job(Bootstrap& worker, const std::string& folder, TerminationConfig config)
      : worker_(worker),
        strategy_(worker, kPatience, cpu_devices(1)),
        scope_(strategy_.scope()),
        variable_({.initial_value = Tensor::scalar(0.0F)}),
        checkpoint_(strategy_) {
    config.end_time = std::nullopt;
    checkpoint_.add("v", variable_);
    manager_.emplace(checkpoint_, folder, CheckpointManagerOptions{.max_to_keep = 0});
    handler_.emplace(*manager_, std::move(config));
  }

  /// Trains to that step; `during` is called in each with its number. Returns whether the job was preempted.
  bool train(
      std::int64_t steps, const std::function<void(std::int64_t)>& during = [](std::int64_t) {}) {
    try {
      while (handler_->total_run_calls() < steps) {
        handler_->run([&] {
          during(handler_->total_run_calls());
          strategy_.run([&](ReplicaContext& replica) {
            variable_.assign_add(replica.all_reduce(ReduceOp::kMean, Tensor::scalar(1.0F)));
          });
        });
      }
      handler_->finish();
    } catch (const Preempted& preempted) {
      EXPECT_EQ(preempted.exit_code(), 42);
      EXPECT_THAT(preempted.what(), ::testing::HasSubstr("step-" + std::to_string(steps_made())));
      return true;
    }
    return false;
  }

  [[nodiscard]] std::int64_t steps_made() const { return handler_->total_run_calls(); }
  [[nodiscard]] float value() const { return variable_.read().item<float>(); }
  [[nodiscard]] PreemptionCheckpointHandler& handler() { return *handler_; }

 private:
  Bootstrap& worker_;
  MultiWorkerMirroredStrategy strategy_;
  StrategyScope scope_;
  Variable variable_;
  Checkpoint checkpoint_;
  std::optional<CheckpointManager> manager_;
  std::optional<PreemptionCheckpointHandler> handler_;
};

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const FoundCheckpoint& found : list_checkpoints(folder)) steps.push_back(found.step);
  return steps;
}

/// All workers are there: none looks at a folder that another still changes.
void meet(Bootstrap& worker) { static_cast<void>(worker.exchange("here")); }

}  // namespace

PreemptionOfOne preemption_by_watcher() {
  auto ends = std::make_shared<std::atomic<bool>>(false);
  auto known = std::make_shared<std::promise<void>>();
  // The handler lets go of the function when it has taken note of its answer.
  const std::shared_ptr<void> while_asked(nullptr, [known](void*) { known->set_value(); });
  PreemptionOfOne preemption;
  preemption.config.signals = {};
  preemption.config.watcher_interval_seconds = 0.001;
  preemption.config.termination_watcher_fn = [ends, while_asked] { return ends->load(); };
  preemption.announce = [ends, known] {
    *ends = true;
    known->get_future().wait();
  };
  return preemption;
}

PreemptionOfOne preemption_by_signal(int signal) {
  return {.announce = [signal] { std::raise(signal); }};
}

void check_preemption(Bootstrap& worker, const std::string& folder, const MakePreemption& make) {
  const int workers = static_cast<int>(worker.workers().size());
  std::int64_t steps_before = 0;
  for (int victim = 0; victim < workers; ++victim) {
    const std::int64_t announced = steps_before + victim % 3;
    PreemptionOfOne preemption = make();
    Job job(worker, folder, std::move(preemption.config));
    EXPECT_EQ(job.steps_made(), steps_before);
    EXPECT_EQ(job.value(), static_cast<float>(steps_before));
    EXPECT_TRUE(job.train(announced + 100, [&](std::int64_t step) {
      if (worker.rank() == victim && step == announced) preemption.announce();
    }));
    steps_before = announced + 2;
    EXPECT_EQ(job.steps_made(), steps_before);
    EXPECT_EQ(job.value(), static_cast<float>(steps_before));
  }
  Job job(worker, folder, make().config);
  EXPECT_FALSE(job.train(steps_before + 5));
  EXPECT_EQ(job.value(), static_cast<float>(steps_before + 5));
  meet(worker);
  EXPECT_EQ(steps_in(folder).back(), steps_before);
}

void check_preemption_in_the_last_steps(Bootstrap& worker, const std::string& folder,
                                        const MakePreemption& make) {
  const int last = static_cast<int>(worker.workers().size()) - 1;
  for (const std::int64_t early : {0, 1}) {
    const std::string own = folder + "/" + std::to_string(early);
    PreemptionOfOne preemption = make();
    {
      Job job(worker, own, std::move(preemption.config));
      EXPECT_TRUE(job.train(4, [&](std::int64_t step) {
        if (worker.rank() == last && step == 3 - early) preemption.announce();
      }));
    }
    Job job(worker, own, make().config);
    EXPECT_EQ(job.steps_made(), 4);
    EXPECT_FALSE(job.train(4));
  }
}

void check_grace_period(Bootstrap& worker, const std::string& folder, const MakePreemption& make) {
  PreemptionOfOne preemption = make();
  preemption.config.grace_period = 1;
  const int last = static_cast<int>(worker.workers().size()) - 1;
  {
    Job job(worker, folder, std::move(preemption.config));
    EXPECT_TRUE(job.train(std::int64_t{1} << 40, [&](std::int64_t step) {
      if (worker.rank() == last && step == 1) preemption.announce();
    }));
  }
  meet(worker);
  const std::vector<std::int64_t> steps = steps_in(folder);
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0], 3);
  Job job(worker, folder, make().config);
  EXPECT_EQ(job.steps_made(), steps[1]);
  EXPECT_EQ(job.value(), static_cast<float>(steps[1]));
}

void check_error_in_a_step(Bootstrap& worker, const std::string& folder) {
  const int last = static_cast<int>(worker.workers().size()) - 1;
  const auto fail = [] { throw Unavailable("the disk is full"); };
  // The others wait for the collective of a step, or, where there is none, before a step.
  for (const bool in_scope : {false, true}) {
    Job job(worker, folder, {});
    const auto train = [&] {
      job.train(1);
      if (in_scope && worker.rank() == last) job.handler().watch_preemption_scope(fail);
      job.train(4, [&](std::int64_t) {
        if (worker.rank() == last) fail();
      });
    };
    if (worker.rank() == last) {
      EXPECT_EQ(message_of(ErrorCode::kUnavailable, train), "the disk is full");
    } else {
      EXPECT_THAT(message_of(ErrorCode::kAborted, train),
                  ::testing::AllOf(::testing::HasSubstr("worker " + std::to_string(last)),
                                   ::testing::HasSubstr("the disk is full")));
    }
    EXPECT_EQ(job.steps_made(), 1);
    meet(worker);
    EXPECT_TRUE(steps_in(folder).empty());
  }
}

void check_other_config(Bootstrap& worker, const std::string& folder) {
  if (worker.workers().size() == 1) return;
  TerminationConfig config;
  if (worker.rank() == 1) config.grace_period = 5;
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { const Job job(worker, folder, config); }),
              ::testing::AllOf(::testing::HasSubstr("grace period of 5 s"),
                               ::testing::HasSubstr("grace period of 0 s")));
}

}  // namespace cohort::testing
