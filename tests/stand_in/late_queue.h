// A stream of the stand-in: tasks run one after the other on a thread of its own, and as late as possible:
// when a thread waits for them, when very many are queued, or after a while. So a missing order has its worst
// effect, and a test sees it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace gpu_stand_in {

class LateQueue {
 public:
  explicit LateQueue(int device);
  ~LateQueue();  ///< after everything that it holds

  LateQueue(const LateQueue&) = delete;
  LateQueue& operator=(const LateQueue&) = delete;

  [[nodiscard]] int device() const noexcept { return device_; }

  void add(std::function<void()> task);

  /// Blocks while it holds as many tasks as streams may.
  void wait_for_room();
  /// Blocks while some thread is blocked there.
  static void wait_for_blocked_threads();
  static void limit(std::size_t tasks);

  /// How many tasks there have been so far: the place of an event that is recorded now.
  [[nodiscard]] std::uint64_t end() const;

  /// Whether the first `place` tasks have run; asking also starts them.
  [[nodiscard]] bool reached(std::uint64_t place);

  /// Blocks until they have.
  void run_to(std::uint64_t place);

 private:
  struct Task {
    std::function<void()> run;
    std::chrono::steady_clock::time_point queued;
  };

  void serve();
  [[nodiscard]] bool is_due() const;

  int device_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::uint64_t done_ = 0;
  std::uint64_t wanted_ = 0;
  bool ending_ = false;
  std::thread thread_;  // last: it starts only when the rest exists
};

}  // namespace gpu_stand_in
