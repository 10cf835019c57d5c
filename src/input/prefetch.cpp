#include <cohort/input/detail/prefetch.h>

#include <sys/prctl.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/value/context.h>

#include "base/quiet_thread.h"

namespace cohort::detail {
namespace {

using namespace std::chrono_literals;

/// The cost of handing an element over from thread to thread, waking a sleeping one included.
constexpr auto kHandOver = 20us;
/// The number of elements that are measured before the other thread takes over reading.
constexpr int kEvidence = 64;

/// The thread sleeps this often until the consumer is expected again, and then until it is woken.
constexpr int kMostNaps = 8;

}  // namespace

ReadAhead::ReadAhead(std::size_t slots, Read read)
    : read_(std::move(read)), slots_(slots), given_(Clock::now()) {
  try {
    thread_ = start_program_thread([this] { serve(); });
  } catch (const std::system_error& error) {
    throw Unavailable("cannot start the thread of an input pipeline that reads ahead: {}", error.what());
  }
}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_one();
}

bool ReadAhead::next(const Take& take) {
  const Clock::time_point asked = Clock::now();
  const Clock::duration busy = asked - given_;
  std::unique_lock lock(mutex_);
  if (!is_decided()) {
    if (!is_reading_) room_.notify_one();  // it sleeps
    lock.unlock();
    slot_is_ready_.wait_until([&] {
      const std::lock_guard looking(mutex_);
      return is_decided();
    });
    lock.lock();
  }
  if (ready_ > 0) return take_ready(std::move(lock), take, busy);
  if (ended_) return false;
  lock.unlock();
  return read_and_take(take, asked, busy);
}

bool ReadAhead::take_ready(std::unique_lock<std::mutex> lock, const Take& take, Clock::duration busy) {
  Slot& slot = slots_[first_];
  const std::exception_ptr error = std::exchange(slot.error, nullptr);
  if (!error) take(first_);
  first_ = (first_ + 1) % slots_.size();
  --ready_;
  is_lent_ = pays(slot.reading, busy).value_or(is_lent_);
  const Clock::time_point now = Clock::now();
  between_takes_ = now - std::exchange(given_, now);
  // At an even pace the thread wakes by itself before the last slot is taken. Waking it is the most expensive
  // part of a hand-over, and the consumer pays for it.
  const bool wakes = is_lent_ && !is_reading_ && (is_asleep_ || ready_ == 0);
  lock.unlock();
  if (wakes) room_.notify_one();
  if (error) std::rethrow_exception(error);
  return true;
}

bool ReadAhead::read_and_take(const Take& take, Clock::time_point asked, Clock::duration busy) {
  bool has_element = false;
  {
    const ContextScope outside_of_scopes({});  // as on the thread
    has_element = read_(first_);
  }
  if (has_element) take(first_);
  given_ = Clock::now();
  const bool lends = pays(given_ - asked, busy).value_or(false);
  if (has_element && !lends) return true;
  {
    const std::lock_guard lock(mutex_);
    ended_ = !has_element;
    is_lent_ = lends;
  }
  room_.notify_one();
  return has_element;
}

/// Whether a thread saves time, once enough elements were measured. The element took `reading`, and the
/// consumer was `busy` before it; reading ahead saves the shorter of the two.
std::optional<bool> ReadAhead::pays(Clock::duration reading, Clock::duration busy) {
  saved_ += std::min(reading, busy);
  const bool enough = saved_ > kEvidence * kHandOver;
  if (++counted_ < kEvidence && !enough) return std::nullopt;
  saved_ = {};
  counted_ = 0;
  return enough;
}

void ReadAhead::serve() {
  // A sleep that ends late makes the consumer wait. If the call is refused, sleeps are only less exact.
  ::prctl(PR_SET_TIMERSLACK, std::chrono::nanoseconds(kHandOver).count() / 10);
  std::unique_lock lock(mutex_);
  while (wait_for_room(lock)) {
    const std::size_t slot = (first_ + ready_) % slots_.size();
    is_reading_ = true;
    lock.unlock();
    const Clock::time_point begin = Clock::now();
    bool has_element = true;
    std::exception_ptr error;
    try {
      has_element = read_(slot);
    } catch (...) {
      error = std::current_exception();
    }
    const Clock::duration reading = Clock::now() - begin;
    lock.lock();
    is_reading_ = false;
    ended_ = !has_element;
    if (has_element) {
      slots_[slot] = {std::move(error), reading};
      ++ready_;
    }
    lock.unlock();
    slot_is_ready_.notify();
    lock.lock();
  }
}

bool ReadAhead::wait_for_room(std::unique_lock<std::mutex>& lock) {
  int naps = 0;
  while (!stopped_ && !ended_ && !has_room()) {
    if (is_lent_ && naps++ < kMostNaps) {
      const Clock::time_point expected = given_ + between_takes_;
      room_.wait_until(lock, std::max(expected, Clock::now() + between_takes_ / 4));
    } else {
      is_asleep_ = true;
      room_.wait(lock);
      is_asleep_ = false;
    }
  }
  return !stopped_ && !ended_;
}

}  // namespace cohort::detail
