// A limit for calls that block inside MPI until all workers have come: at the start of a
// Session, before the workers watch each other, and where MPI makes a communicator. No error
// gets out of there, so the watchdog ends the process, with a line like that of a deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort::mpi {

class HangWatchdog {
 public:
  /// No limit when zero. `place` completes "One of them has died, failed or hangs ...".
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
