// How long this process has waited for input. Datasets say so, and so may programs that read by themselves;
// the record of calls notes it, to tell a worker that comes late from reading from one that comes late from
// computing.
#pragma once

#include <atomic>
#include <cstdint>

namespace cohort {

/// While it lives, its thread waits for input. Within another one of the same thread it counts nothing.
class InputWait {
 public:
  InputWait() noexcept;
  ~InputWait();
  InputWait(const InputWait&) = delete;
  InputWait& operator=(const InputWait&) = delete;

  /// In nanoseconds, of all threads, without the waits that have not ended.
  [[nodiscard]] static std::uint64_t total() noexcept { return total_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<std::uint64_t> total_{0};

  std::uint64_t begin_;
};

}  // namespace cohort
