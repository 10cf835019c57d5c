#include <cohort/trainer/callbacks/learning_rate_scheduler.h>

#include <utility>

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

}  // namespace cohort
