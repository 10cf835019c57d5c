// The loss since an epoch began: each replica adds up its own examples, and all of them are added up when
// somebody asks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <cohort/strategy/strategy.h>
#include <cohort/trainer/logs.h>
#include <cohort/trainer/step_outcome.h>

namespace cohort::detail {

class EpochTotals {
 public:
  explicit EpochTotals(const Strategy& strategy);

  /// In a replica. @throws InvalidArgument for losses that are not those of examples.
  void add(const ReplicaContext& replica, const StepOutcome& outcome);

  void reset();

  /// Sets the loss over all replicas of all workers. Collective.
  void set_logs(Logs& logs);

 private:
  /// Of one replica, which shares no cache line with others.
  struct alignas(64) Sums {
    double loss = 0;
    double examples = 0;
  };

  Strategy strategy_;
  std::vector<Sums> sums_;
};

/// The sum of the losses, each times its weight, and their number.
[[nodiscard]] LossSum sum_of(const StepOutcome& outcome);

}  // namespace cohort::detail
