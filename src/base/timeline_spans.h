// The spans of this process that have ended, for whoever draws them. Any thread may call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace cohort {

/// Times are in nanoseconds of the steady clock.
struct FinishedSpan {
  std::string name = {};
  int thread = 0;  ///< in the order in which threads began their first span, from 0
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Told of each span on its thread, when it begins and ends.
struct SpanListener {
  void (*begin)(const char* name) noexcept = nullptr;
  void (*end)() noexcept = nullptr;
};

class TimelineSpans {
 public:
  [[nodiscard]] static TimelineSpans& of_this_process();

  /// Spans that begin from here on are kept, or no longer.
  void keep(bool wanted);
  [[nodiscard]] bool are_kept() const noexcept { return are_kept_.load(std::memory_order_relaxed); }

  void add(FinishedSpan span) noexcept;

  /// The oldest of those that nobody has taken yet.
  [[nodiscard]] std::vector<FinishedSpan> take(std::size_t most);
  /// How many there was no room for, since nobody took them soon enough.
  [[nodiscard]] std::uint64_t lost() const;

  /// One for the life of the process.
  void set_listener(const SpanListener& listener) noexcept { listener_.store(&listener); }
  [[nodiscard]] const SpanListener* listener() const noexcept {
    return listener_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> are_kept_{false};
  std::atomic<const SpanListener*> listener_{nullptr};
  mutable std::mutex mutex_;
  std::uint64_t lost_ = 0;
  std::vector<FinishedSpan> spans_;
};

}  // namespace cohort
