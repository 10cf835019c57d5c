// Callbacks that change the optimizer: its learning rate, and whether variables are its averages.
#include <algorithm>
#include <cmath>
#include <utility>

#include <cohort/base/log.h>
#include <cohort/trainer/callbacks/learning_rate_scheduler.h>
#include <cohort/trainer/callbacks/reduce_on_plateau.h>
#include <cohort/trainer/callbacks/swap_averages.h>

namespace cohort {

LearningRateScheduler::LearningRateScheduler(Function schedule) : schedule_(std::move(schedule)) {
  if (!schedule_) throw InvalidArgument("LearningRateScheduler: there is no function of the rate");
}

void LearningRateScheduler::on_train_begin(const Logs& /*logs*/) {
  if (training().optimizer() == nullptr)
    throw InvalidArgument(
        "LearningRateScheduler: this training names no optimizer; set StepFunctions::optimizer");
  epoch_ = -1;
  rate_ = 0;
}

void LearningRateScheduler::on_epoch_begin(int epoch, const Logs& /*logs*/) {
  Optimizer& optimizer = *training().optimizer();
  const double before = epoch_ < 0 ? optimizer.learning_rate() : rate_;
  if (epoch != epoch_) rate_ = schedule_(epoch, before);  // an epoch that goes on has its rate
  epoch_ = epoch;
  optimizer.set_learning_rate(rate_);
}

void LearningRateScheduler::on_epoch_end(int /*epoch*/, Logs& logs) { logs.set("learning_rate", rate_); }

void LearningRateScheduler::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  checkpoint.add(prefix + "/learning_rate_scheduler/epoch", epoch_);
  checkpoint.add(prefix + "/learning_rate_scheduler/rate", rate_);
}

ReduceOnPlateau::ReduceOnPlateau(ReduceOnPlateauOptions options)
    : options_(std::move(options)), monitor_(options_.monitor, options_.mode) {
  if (!(options_.factor >= 0 && options_.factor < 1))
    throw InvalidArgument("ReduceOnPlateau: a factor of {} reduces nothing; it must be in [0, 1)",
                          options_.factor);
  if (options_.patience < 0 || options_.cooldown < 0 || !(options_.min_delta >= 0) ||
      !(options_.min_rate >= 0))
    throw InvalidArgument(
        "ReduceOnPlateau: patience {}, cooldown {}, min_delta {} and min_rate {} must not be negative",
        options_.patience, options_.cooldown, options_.min_delta, options_.min_rate);
}

void ReduceOnPlateau::on_train_begin(const Logs& /*logs*/) {
  if (training().optimizer() == nullptr)
    throw InvalidArgument("ReduceOnPlateau: this training names no optimizer; set StepFunctions::optimizer");
  monitor_.begin(training(), "ReduceOnPlateau");
  wait_ = 0;
  cooldown_ = 0;
  has_best_ = false;
  best_ = 0;
  rate_ = -1;
  is_restored_ = false;
}

void ReduceOnPlateau::on_epoch_begin(int /*epoch*/, const Logs& /*logs*/) {
  if (!std::exchange(is_restored_, true) && rate_ >= 0) training().optimizer()->set_learning_rate(rate_);
}

void ReduceOnPlateau::on_epoch_end(int /*epoch*/, Logs& logs) {
  logs.set("learning_rate", training().optimizer()->learning_rate());
  const std::optional<double> value = monitor_.read(logs, training());
  if (!value) return;
  if (cooldown_ > 0) {
    --cooldown_;
    wait_ = 0;
  }
  const bool is_first = !has_best_ && !std::isnan(*value);
  if (is_first || (has_best_ && monitor_.is_better(*value, best_, options_.min_delta))) {
    has_best_ = true;
    best_ = *value;
    wait_ = 0;
  } else if (cooldown_ == 0 && ++wait_ >= options_.patience) {
    reduce();
  }
}

void ReduceOnPlateau::reduce() {
  const double rate = training().optimizer()->learning_rate();
  if (rate <= options_.min_rate) return;
  rate_ = std::max(rate * options_.factor, options_.min_rate);
  training().optimizer()->set_learning_rate(rate_);
  cooldown_ = options_.cooldown;
  wait_ = 0;
  if (training().reports())
    logging::info("ReduceOnPlateau: {} gets no better; the learning rate is {} now", monitor_.name(), rate_);
}

void ReduceOnPlateau::add_state(Checkpoint& checkpoint, const std::string& prefix) {
  const std::string name = prefix + "/reduce_on_plateau/" + monitor_.name();
  checkpoint.add(name + "/wait", wait_);
  checkpoint.add(name + "/cooldown", cooldown_);
  checkpoint.add(name + "/has_best", has_best_);
  checkpoint.add(name + "/best", best_);
  checkpoint.add(name + "/rate", rate_);
}

void SwapAverages::on_train_begin(const Logs& /*logs*/) {
  const Optimizer* optimizer = training().optimizer();
  if (optimizer == nullptr || !optimizer->update_options().average)
    throw InvalidArgument(
        "SwapAverages: the training's optimizer keeps no averages; set its option `average`");
  has_ended_ = false;
}

void SwapAverages::on_train_end(const Logs& /*logs*/) {
  if (training().optimizer()->iterations() == 0) return;
  swap();
  has_ended_ = true;
}
void SwapAverages::on_test_begin(const Logs& /*logs*/) {
  if (!has_ended_) swap();
}
void SwapAverages::on_test_end(const Logs& /*logs*/) {
  if (!has_ended_) swap();
}

void SwapAverages::swap() {
  if (training().optimizer()->iterations() == 0)
    throw InvalidArgument(
        "SwapAverages: there are no averages before the first step; train before this test");
  training().optimizer()->swap_averages(training().parameters());
}

}  // namespace cohort
