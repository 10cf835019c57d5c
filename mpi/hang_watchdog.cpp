#include "hang_watchdog.h"

#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/host_name.h"

#include "process_end.h"

namespace cohort::mpi {

HangWatchdog::HangWatchdog(std::chrono::duration<double> limit, const char* place) : place_(place) {
  if (limit.count() > 0) thread_ = start_quiet_thread([this, limit] { run(limit); });
}

HangWatchdog::~HangWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    all_came_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void HangWatchdog::run(std::chrono::duration<double> limit) {
  std::unique_lock lock(mutex_);
  // In steps, since the sum of now and a very long limit would overflow; in short ones, since a job that was
  // suspended has not hung meanwhile.
  for (double left = limit.count(); left > 0; left -= 1) {
    const std::chrono::duration<double> step(std::min(left, 1.0));
    if (changed_.wait_for(lock, step, [this] { return all_came_; })) return;
  }
  write_line(
      fmt::format("cohort: host {}, pid {}: the workers have not come together within {:.4g} s "
                  "(a communicator's timeout_seconds, or COHORT_COLLECTIVE_TIMEOUT_SECONDS). One of them has "
                  "died, failed or hangs {}",
                  host_name(), ::getpid(), limit.count(), place_));
  ::_exit(1);
}

}  // namespace cohort::mpi
