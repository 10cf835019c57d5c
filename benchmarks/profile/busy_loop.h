// Computing, as a backward pass does, for a given time: arithmetic on this thread's own core,
// so many rounds of it as were found to take that long. It does not look at a clock while it
// runs: whoever takes the core away meanwhile makes it last longer, as with real work.
#pragma once

#include "tick_clock.h"

namespace cohort::bench {

class BusyLoop {
 public:
  /// Takes some 50 ms. All threads that will compute at once should calibrate at once.
  explicit BusyLoop(const TickClock& clock);

  /// Computes for about `microseconds` when nothing disturbs it.
  void run(double microseconds) const;

 private:
  double rounds_per_us_ = 0;
};

}  // namespace cohort::bench
