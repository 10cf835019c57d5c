// A header that is missing.
//
// Says: distribute_dataset() takes a Dataset, and needs #include <cohort/input/distribute.h>
#include <cohort/input/dataset.h>
#include <cohort/strategy/mirrored_strategy.h>
#ifndef MISUSE
#include <cohort/input/distribute.h>
#endif

void train(const cohort::MirroredStrategy& strategy, const cohort::Dataset<cohort::Tensor>& dataset) {
  static_cast<void>(strategy.distribute_dataset(dataset));
}
