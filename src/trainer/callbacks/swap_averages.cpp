#include <cohort/trainer/callbacks/swap_averages.h>

namespace cohort {

void SwapAverages::on_train_begin(const Logs& /*logs*/) {
  const Optimizer* optimizer = training().optimizer();
  if (optimizer == nullptr || !optimizer->update_options().average)
    throw InvalidArgument(
        "SwapAverages: the training's optimizer keeps no averages; set its option `average`");
}

void SwapAverages::on_train_end(const Logs& /*logs*/) {
  if (training().optimizer()->iterations() > 0) swap();
}
void SwapAverages::on_test_begin(const Logs& /*logs*/) { swap(); }
void SwapAverages::on_test_end(const Logs& /*logs*/) { swap(); }

void SwapAverages::swap() { training().optimizer()->swap_averages(training().parameters()); }

}  // namespace cohort
