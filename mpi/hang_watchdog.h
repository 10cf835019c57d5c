// Bounds what waits inside MPI until all workers have come: the start of a Session, before
// they watch each other, and the making of MPI communicators. No error gets out of there,
// so the watchdog ends this process with a line, like a collective's deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort::mpi {

class HangWatchdog {
 public:
  /// No limit when zero. `place` is where in the program the missing are looked for.
  HangWatchdog(std::chrono::duration<double> limit, const char* place);
  ~HangWatchdog();

  HangWatchdog(const HangWatchdog&) = delete;
  HangWatchdog& operator=(const HangWatchdog&) = delete;

 private:
  void run(std::chrono::duration<double> limit);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool all_came_ = false;
  const char* const place_;
  std::thread thread_;
};

}  // namespace cohort::mpi
