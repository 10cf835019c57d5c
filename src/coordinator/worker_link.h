// A worker as the coordinator sees it: which calls it was given, and how many more it may be given.
//
// A worker runs its calls one after the other. Short ones are sent ahead, as many as it runs in some 200 us,
// so that it does not wait for the next one. A worker whose call takes long gets none behind it, and what was
// sent before that showed is asked back.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include <cohort/remote/endpoint.h>

#include "coordinator/call.h"

namespace cohort::coordinator {

class WorkerLink {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkerLink(remote::Peer& peer) noexcept : peer_(&peer) {}

  [[nodiscard]] remote::Peer& peer() const noexcept { return *peer_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return calls_.size(); }

  /// Whether it waits for a call. What is given while calls are asked back could not be told from what comes
  /// back.
  [[nodiscard]] bool is_idle() const noexcept { return calls_.empty() && !recalled_; }

  /// Whether it will be, as soon as it has answered that nothing is left to come back.
  [[nodiscard]] bool is_about_to_be_idle() const noexcept { return calls_.empty() && recalled_; }

  /// Whether a call may be sent ahead.
  [[nodiscard]] bool has_room(Clock::time_point now) const noexcept {
    return calls_.size() < window_ && !recalled_ && !is_long(now);
  }

  /// Whether calls wait behind a long one, and were not asked back yet.
  [[nodiscard]] bool is_held_up(Clock::time_point now) const noexcept {
    return has_more_than_one() && is_long(now);
  }
  /// Whether calls wait that were not asked back yet.
  [[nodiscard]] bool has_more_than_one() const noexcept { return calls_.size() > 1 && !recalled_; }

  /// Numbers count from 1, and none is used again.
  [[nodiscard]] std::uint64_t next_number() const noexcept { return next_; }

  /// The calls up to this number have ended, and their results are here.
  [[nodiscard]] std::uint64_t last_ended() const noexcept {
    return calls_.empty() ? next_ - 1 : calls_.front().number - 1;
  }

  void give(Call call) {
    if (calls_.empty()) busy_since_ = Clock::now();
    call.number = next_++;
    calls_.push_back(std::move(call));
  }

  /// The call `number`, which has ended; nothing for one that was not given.
  [[nodiscard]] std::optional<Call> take(std::uint64_t number) {
    if (calls_.empty() || calls_.front().number != number) return std::nullopt;
    Call call = std::move(calls_.front());
    calls_.pop_front();
    measure();
    return call;
  }

  /// Takes back the calls from `number` on; 0 for none.
  [[nodiscard]] std::deque<Call> take_from(std::uint64_t number) {
    std::deque<Call> result;
    while (number != 0 && !calls_.empty() && calls_.back().number >= number) {
      result.push_front(std::move(calls_.back()));
      calls_.pop_back();
    }
    window_ = 1;
    recalled_ = false;
    return result;
  }
  [[nodiscard]] std::deque<Call> take_all() { return std::exchange(calls_, {}); }

  /// Calls are asked back, until take_from.
  void set_recalled() noexcept { recalled_ = true; }

  std::size_t known_variables = 0;  ///< how many the worker was told of

 private:
  static constexpr std::size_t kWidest = 512;
  static constexpr std::chrono::microseconds kAhead{200};
  static constexpr std::chrono::milliseconds kLong{5};

  [[nodiscard]] bool is_long(Clock::time_point now) const noexcept {
    return !calls_.empty() && now - busy_since_ > kLong;
  }

  void measure() {
    const Clock::time_point now = Clock::now();
    const Clock::duration took = now - busy_since_;
    busy_since_ = now;
    mean_ = (mean_ * 7 + took) / 8;
    const auto shortest = std::max<Clock::duration>(mean_, std::chrono::nanoseconds(100));
    window_ = std::clamp<std::size_t>(static_cast<std::size_t>(kAhead / shortest), 1, kWidest);
  }

  remote::Peer* peer_;
  std::deque<Call> calls_;  // by number
  std::uint64_t next_ = 1;
  std::size_t window_ = 1;
  bool recalled_ = false;
  Clock::time_point busy_since_ = {};
  Clock::duration mean_ = kAhead;
};

}  // namespace cohort::coordinator
