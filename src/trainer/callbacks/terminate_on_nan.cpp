#include <cohort/trainer/callbacks/terminate_on_nan.h>

#include <cmath>

#include <cohort/base/log.h>

namespace cohort {

void TerminateOnNaN::on_train_batch_end(std::int64_t /*batch*/, const Logs& logs) {
  if (looks_ == Looks::kEachBatch) look(logs);
}

void TerminateOnNaN::on_epoch_end(int /*epoch*/, Logs& logs) { look(logs); }

void TerminateOnNaN::look(const Logs& logs) {
  const double* loss = logs.find("loss");
  if (loss == nullptr || std::isfinite(*loss) || training().stopped()) return;
  if (training().reports())
    logging::error("TerminateOnNaN: the loss is {} after step {}; the training ends", *loss,
                   training().step());
  training().stop();
}

}  // namespace cohort
