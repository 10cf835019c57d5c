#include <cohort/checkpoint/preemption_checkpoint_handler.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/environment.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "strategy/replica_run.h"

#include "checkpoint/workers.h"
#include "cluster/launcher.h"
#include "preemption_notices.h"

namespace cohort {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr const char* kEndTime = "SLURM_JOB_END_TIME";

/// What a worker asks for before a step. The workers do what the one that asks for most does.
enum class Request : std::int64_t {
  kNone,
  kSave,  ///< once; training goes on
  kEnd,   ///< save and end
};

void validate(const TerminationConfig& config, const StrategyExtended& strategy) {
  const auto require = [](bool good, const char* name, double value) {
    if (!good) throw InvalidArgument("TerminationConfig: {} is {}", name, value);
  };
  require(config.grace_period >= 0 && std::isfinite(config.grace_period), "grace_period",
          config.grace_period);
  require(config.watcher_interval_seconds > 0 && std::isfinite(config.watcher_interval_seconds),
          "watcher_interval_seconds", config.watcher_interval_seconds);
  require(config.seconds_before_end >= 0 && std::isfinite(config.seconds_before_end), "seconds_before_end",
          config.seconds_before_end);
  require(config.exit_code >= 0 && config.exit_code <= 255, "exit_code", config.exit_code);
  if (strategy.variable_keeper() != nullptr) {
    throw Unimplemented(
        "a PreemptionCheckpointHandler needs workers that make every step together; the tasks of {} do not: "
        "save with a CheckpointManager",
        strategy.strategy_name());
  }
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> job_end_time() {
  const Environment variables = process_environment();
  const auto found = variables.find(kEndTime);
  std::int64_t seconds = -1;
  if (found == variables.end()) {
    if (!is_first_rank()) return std::nullopt;  // the first one asks for all
    const std::optional<std::int64_t> said = ask_slurm_for_end_time(variables);
    if (!said) return std::nullopt;
    return std::chrono::system_clock::time_point(std::chrono::seconds(*said));
  }
  const std::string& text = found->second;
  const char* last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, seconds);
  if (status != std::errc() || end != last || seconds < 0)
    throw InvalidArgument("{} is '{}'; it must be a number of seconds since 1970", kEndTime, text);
  return std::chrono::system_clock::time_point(std::chrono::seconds(seconds));
}

class PreemptionCheckpointHandler::Impl {
 public:
  Impl(std::unique_ptr<CheckpointManager> own_manager, CheckpointManager& manager, TerminationConfig config)
      : own_manager_(std::move(own_manager)),
        manager_(manager),
        config_(std::move(config)),
        strategy_(manager.checkpoint().strategy().extended()),
        vote_(strategy_, purpose()),
        signals_(config_.signals),
        watcher_(std::exchange(config_.termination_watcher_fn, {}),
                 Seconds(config_.watcher_interval_seconds)),
        restored_(manager_.restore_latest()),
        steps_(restored_.step.value_or(0)) {
    // A job with little time must come further than its first step.
    if (config_.end_time)
      end_margin_ = std::clamp(time_left() / 10, Seconds(0), Seconds(config_.seconds_before_end));
  }

  [[nodiscard]] const LatestCheckpoint& restored() const noexcept { return restored_; }
  [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
  void count_step() noexcept { ++steps_; }

  void check() {
    strategy_.require_cross_replica("a step under a PreemptionCheckpointHandler");
    note_step_time();
    const Request request = from_vote(vote_.cast(to_vote(own_request())));
    if (request == Request::kEnd) end();
    if (request == Request::kSave && !std::exchange(has_saved_, true)) save();
    step_began_ = Clock::now();
  }

  void finish() {
    strategy_.require_cross_replica("finish");
    if (from_vote(vote_.cast_and_wait(to_vote(own_request()))) != Request::kNone) end();
  }

  void fail(const std::exception_ptr& error) {
    strategy_.abort_workers(error);
    const std::string who = vote_.name_of(rank());
    vote_.abort(failure_for_others(who, {"", rank(), ""}, error));
  }

 private:
  [[nodiscard]] std::string purpose() const {
    validate(config_, strategy_);
    return fmt::format("watches for preemption with a grace period of {} s and exit code {}",
                       config_.grace_period, config_.exit_code);
  }
  [[nodiscard]] int rank() const {
    return strategy_.workers() == 1 ? 0 : strategy_.workers_communicator().rank();
  }

  /// The largest vote is that of a worker with the largest request, and names it.
  [[nodiscard]] std::int64_t to_vote(Request request) const {
    return request == Request::kNone ? 0 : static_cast<std::int64_t>(request) * strategy_.workers() + rank();
  }
  Request from_vote(std::int64_t vote) {
    asking_worker_ = static_cast<int>(vote % strategy_.workers());
    return static_cast<Request>(vote / strategy_.workers());
  }

  /// The mean over all steps so far, without the time that saving took.
  void note_step_time() {
    if (!step_began_) return;
    const Seconds step = Clock::now() - *step_began_;
    mean_step_ += (step - mean_step_) / static_cast<double>(++timed_steps_);
  }

  /// What is needed from a decision to the end: a request takes effect in the step after next, and that
  /// and the checkpoint may take twice their usual time.
  [[nodiscard]] Seconds time_to_end() const { return 2 * (3 * mean_step_ + save_took_); }

  Request own_request() {
    if (is_near_end_time()) return Request::kEnd;
    note_being_asked();
    if (!asked_at_) return Request::kNone;
    if (config_.grace_period == 0) return Request::kEnd;
    const bool is_over = Clock::now() >= *asked_at_ + Seconds(config_.grace_period) - time_to_end();
    return is_over ? Request::kEnd : Request::kSave;
  }

  void note_being_asked() {
    if (asked_at_) return;
    if (const auto signal = signals_.received()) {
      asked_at_ = signal->at;
      const char* name = ::sigabbrev_np(signal->signal);
      say_why(name != nullptr ? fmt::format("it got SIG{}", name)
                              : fmt::format("it got signal {}", signal->signal));
      return;
    }
    try {
      asked_at_ = watcher_.said_yes();
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
    if (asked_at_) say_why("termination_watcher_fn says so");
  }

  [[nodiscard]] Seconds time_left() const { return *config_.end_time - std::chrono::system_clock::now(); }

  bool is_near_end_time() {
    if (!config_.end_time || time_left() - time_to_end() > end_margin_) return false;
    if (!std::exchange(has_said_end_, true))
      say_why(fmt::format("its time is over in {:.0f} s", time_left().count()));
    return true;
  }

  void say_why(const std::string& reason) const {
    logging::warning("{} is to end: {}; all workers save a checkpoint in the step after next at the latest",
                     vote_.name_of(rank()), reason);
  }

  /// Whether the program has saved this step itself.
  bool has_saved_step() {
    try {
      manager_.checkpoint().wait();
    } catch (const Error& error) {
      logging::warning("a save in the background has failed: {}", error.what());
      return false;
    }
    return manager_.latest_step() == steps_;
  }

  void save() {
    const auto begin = Clock::now();
    if (config_.save_fn) {
      config_.save_fn();
    } else if (!has_saved_step()) {
      saved_as_ = fmt::format(" as '{}'", manager_.save(steps_));
    }
    save_took_ = Clock::now() - begin;
  }

  [[noreturn]] void end() {
    save();
    // All workers are here. What is under way would count as a failure when the exception destroys it.
    vote_.settle();
    manager_.settle();
    signals_.ignore_from_now_on();
    if (config_.exit_fn) config_.exit_fn();
    throw Preempted(
        fmt::format("{} was to end: the state after {} steps is saved{}; start the program again to go on",
                    vote_.name_of(asking_worker_), steps_, saved_as_),
        config_.exit_code);
  }

  std::unique_ptr<CheckpointManager> own_manager_;
  CheckpointManager& manager_;
  TerminationConfig config_;
  StrategyExtended& strategy_;
  checkpoint::StepVote vote_;
  checkpoint::PreemptionSignals signals_;
  checkpoint::TerminationWatcher watcher_;
  LatestCheckpoint restored_;
  std::int64_t steps_;

  std::optional<Clock::time_point> asked_at_;  ///< this worker, to end
  Seconds end_margin_{0};
  bool has_said_end_ = false;
  bool has_saved_ = false;  ///< the first of two checkpoints
  int asking_worker_ = 0;
  std::string saved_as_;
  std::optional<Clock::time_point> step_began_;
  Seconds mean_step_{0};
  std::int64_t timed_steps_ = 0;
  Seconds save_took_{0};
};

PreemptionCheckpointHandler::PreemptionCheckpointHandler(CheckpointManager& manager, TerminationConfig config)
    : impl_(std::make_unique<Impl>(nullptr, manager, std::move(config))) {}

PreemptionCheckpointHandler::PreemptionCheckpointHandler(Checkpoint& checkpoint, std::string folder,
                                                         TerminationConfig config) {
  auto manager = std::make_unique<CheckpointManager>(checkpoint, std::move(folder),
                                                     CheckpointManagerOptions{.max_to_keep = 1});
  CheckpointManager& own = *manager;
  impl_ = std::make_unique<Impl>(std::move(manager), own, std::move(config));
}

PreemptionCheckpointHandler::~PreemptionCheckpointHandler() = default;

const LatestCheckpoint& PreemptionCheckpointHandler::restored() const noexcept { return impl_->restored(); }
std::int64_t PreemptionCheckpointHandler::total_run_calls() const noexcept { return impl_->steps(); }
void PreemptionCheckpointHandler::check() { impl_->check(); }
void PreemptionCheckpointHandler::count_step() noexcept { impl_->count_step(); }
void PreemptionCheckpointHandler::finish() { impl_->finish(); }
void PreemptionCheckpointHandler::fail(const std::exception_ptr& error) { impl_->fail(error); }

void PreemptionCheckpointHandler::save_checkpoint_if_preempted() {
  check();
  count_step();
}

}  // namespace cohort
