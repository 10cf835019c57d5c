#include <cohort/trainer/callbacks/swap_averages.h>

namespace cohort {

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
