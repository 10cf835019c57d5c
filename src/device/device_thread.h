// A DeviceThread is the persistent thread of one CPU device, pinned to the device's
// cores. It runs one task at a time; the owner submits a task and later waits for it.
// Tasks must not throw. Submit and wait from one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace cohort {

class DeviceThread {
 public:
  /// Starts the thread; an empty `cores` leaves it unpinned.
  explicit DeviceThread(std::vector<int> cores);
  ~DeviceThread();  ///< waits for a running task, then ends the thread

  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  /// Runs `task` on the thread; the task submitted before must have been waited for.
  void submit(std::function<void()> task);

  /// Blocks until the submitted task has ended.
  void wait();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort
