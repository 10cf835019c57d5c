// Reading ahead of a consumer, on a thread, as long as that saves time. Handing an element over costs some
// microseconds, so after a while the consumer reads by itself if reading is faster than that, or if it does
// nothing between two elements. Elements come in order, and never more than the slots hold are read ahead.
//
// The thread lives as long as this object. The destructor waits for the element that it is reading.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <cohort/base/event_count.h>

namespace cohort::detail {

class ReadAhead {
 public:
  /// Reads the next element into the slot; false at the end. Never called by two threads at once.
  using Read = std::function<bool(std::size_t slot)>;
  /// Takes the element in the slot, on the consumer's thread; does not throw.
  using Take = std::function<void(std::size_t slot)>;

  /// `slots` is at least 1. @throws Unavailable when the thread cannot be started.
  ReadAhead(std::size_t slots, Read read);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Waits for the next element and calls `take` with its slot; false at the end. Throws what reading that
  /// element threw; the next call continues with the following element.
  [[nodiscard]] bool next(const Take& take);

 private:
  using Clock = std::chrono::steady_clock;

  struct Slot {
    std::exception_ptr error;
    Clock::duration reading{};
  };

  [[nodiscard]] bool take_ready(std::unique_lock<std::mutex> lock, const Take& take, Clock::duration busy);
  [[nodiscard]] bool read_and_take(const Take& take, Clock::time_point asked, Clock::duration busy);
  [[nodiscard]] std::optional<bool> pays(Clock::duration reading, Clock::duration busy);

  void serve();
  /// False when there is nothing left to read, or this object is being destroyed.
  [[nodiscard]] bool wait_for_room(std::unique_lock<std::mutex>& lock);

  [[nodiscard]] bool has_room() const { return is_lent_ && ready_ < slots_.size(); }
  /// Whether the consumer need not wait: an element is ready, the source has ended, or the consumer may read
  /// it.
  [[nodiscard]] bool is_decided() const { return ready_ > 0 || ended_ || !(is_lent_ || is_reading_); }

  Read read_;

  // Used by the consumer alone: the time that the thread saves it, summed up over a few elements.
  Clock::duration saved_{};
  int counted_ = 0;

  EventCount slot_is_ready_;
  std::condition_variable room_;
  std::mutex mutex_;  // guards what follows; the source is read without it
  std::vector<Slot> slots_;
  std::size_t first_ = 0;    ///< the slot that is taken next
  std::size_t ready_ = 0;    ///< slots with elements, from there
  Clock::time_point given_;  ///< when the last element was given; used by the consumer while it reads itself
  Clock::duration between_takes_{};
  bool is_lent_ = true;  ///< the thread, not the consumer, may read the source
  bool is_reading_ = false;
  bool is_asleep_ = false;  ///< the thread, until it is woken
  bool ended_ = false;
  bool stopped_ = false;

  std::thread thread_;
};

}  // namespace cohort::detail
