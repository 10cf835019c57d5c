// The recorded lines about training: optimizers, losses, metrics, fit and what belongs to it.
#include <cstdlib>
#include <iostream>

#include "layout.h"
#include "replay.h"
#include "training/families.h"

int main(int argc, char** argv) {
  using namespace cohort::conformance;
  const Recording recording = read_records(argc, argv);
  Replay replay(recording, nullptr);
  for (const auto& families :
       {batch_norm_families(), callback_families(), callback_order_families(), estimator_families(),
        event_format_families(), fit_checkpoint_families(), fit_families(), logger_families(),
        loss_families(), schedule_families(), metric_families(), first_metric_families(),
        optimizer_families(), scripted_callback_families(), summary_families()}) {
    for (const Family& family : families) replay.add(family);
  }
  Tally tally = replay.replay(kTrainingLayout);
  tally.failed += replay.check_tables();
  std::cout << describe(tally) << '\n';
  return tally.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
