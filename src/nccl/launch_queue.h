// The order in which a GPU gets the collectives of this process: that in which the program calls them, over
// all communicators with the GPU. NCCL needs the same order on all GPUs: each collective occupies a part of
// the GPU until all members have come, so two that begin in different orders on two GPUs may wait for each
// other for ever. It also needs one thread at a time for each GPU.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <cohort/device/device.h>

#include "cuda/capture.h"

namespace cohort::nccl {

class LaunchQueue final : public cuda::QueuesWork {
 public:
  /// That of the GPU, which all its communicators share.
  [[nodiscard]] static std::shared_ptr<LaunchQueue> of(Device device);

  explicit LaunchQueue(Device device) : device_(device) {}
  ~LaunchQueue() override;  ///< nothing is queued

  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  /// Has the queue's thread call `launch` in its turn.
  void add(const void* owner, std::function<void()> launch);

  /// Forgets what `owner` has added and is not being launched.
  void remove(const void* owner);

  [[nodiscard]] bool has(const void* owner);
  /// Blocks until the queue has nothing of `owner` any more.
  void wait_for(const void* owner);
  void wait_until_empty() override;

  /// The calling thread's turn.
  class [[nodiscard]] Turn {
   public:
    explicit Turn(LaunchQueue& queue);             ///< waits for it
    Turn(LaunchQueue& queue, std::try_to_lock_t);  ///< has it only if nothing is queued
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    [[nodiscard]] explicit operator bool() const noexcept { return has_it_; }

   private:
    LaunchQueue& queue_;
    bool has_it_ = true;
  };

 private:
  struct Entry {
    const void* owner = nullptr;
    std::function<void()> launch;  ///< none for the turn of a thread
  };

  void serve();
  void pop();

  Device device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Entry>> entries_;  ///< the first has its turn
  bool ending_ = false;
  std::jthread thread_;  ///< started by the first call that is not made by its caller
};

}  // namespace cohort::nccl
