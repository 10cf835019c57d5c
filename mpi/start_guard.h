// Bounds the start of a Session. Until the workers watch each other, a process that dies
// in or before MPI_Init leaves the others waiting inside MPI for ever, unless the launcher
// ends them. The guard ends this process with a line instead, like a collective's deadline.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cohort::mpi {

class StartGuard {
 public:
  /// No limit when zero.
  explicit StartGuard(std::chrono::duration<double> limit);
  ~StartGuard();

  StartGuard(const StartGuard&) = delete;
  StartGuard& operator=(const StartGuard&) = delete;

 private:
  void run(std::chrono::duration<double> limit);

  std::mutex mutex_;
  std::condition_variable started_;
  bool is_started_ = false;
  std::thread thread_;
};

}  // namespace cohort::mpi
