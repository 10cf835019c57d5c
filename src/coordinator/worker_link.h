// Between the coordinator and a worker: the messages, the calls that the worker is given, and how many more
// it may be given.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/coordinator/detail/function.h>
#include <cohort/coordinator/remote_value.h>
#include <cohort/remote/endpoint.h>

#include "server/serving/protocol.h"

namespace cohort::coordinator {

/// The messages between the coordinator and its workers.
enum class CoordinatorMessage : std::uint16_t {
  // To the coordinator:
  kJoin = static_cast<std::uint16_t>(server::MessageKind::kFirstOfCoordinator),
  kDone,      ///< a call has ended; number: of the call. Body: Outcome, then the result or the error
  kReturned,  ///< calls that were not begun, from this number on, 0 for none; answers kRecall
  // To a worker:
  kOtherBinary,  ///< the worker does not run the coordinator's program, and takes no part
  kVariables,    ///< variables that the coordinator has made
  kMake,         ///< an element of a PerWorker; number: of the PerWorker
  kFree,         ///< elements of PerWorkers that nobody uses any more; body: their numbers
  kRun,          ///< a call; numbered from 1 for each incarnation
  kCancel,       ///< calls up to this number are not wanted any more
  kRecall,       ///< calls that were not begun are given back
};

[[nodiscard]] constexpr std::uint16_t to_number(CoordinatorMessage kind) {
  return static_cast<std::uint16_t>(kind);
}

enum class Outcome : std::uint8_t { kSuccess, kFailure };

/// A function that was scheduled, with its arguments, until it has ended.
struct Call {
  FunctionNumber function = 0;
  EncodedArguments arguments = {};
  std::shared_ptr<RemoteState> state = {};
  std::uint64_t place = 0;   ///< in the order of scheduling
  std::uint64_t number = 0;  ///< among those of the worker that it was given to
  int losses = 0;            ///< of workers while they ran it
};

/// A worker as the coordinator sees it.
///
/// A worker runs its calls one after the other. Short ones are sent ahead, as many as it runs in some 200 us,
/// so that it does not wait for the next one. A worker whose call takes long gets none behind it, and what
/// was sent before that showed is asked back.
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
