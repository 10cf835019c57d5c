// An Endpoint that threads share: one of those that wait polls it, for all of them. Any thread may call.
//
// Signs of life are those that the environment sets (COHORT_HEARTBEAT_SECONDS, COHORT_SILENCE_SECONDS).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <cohort/base/deadline.h>
#include <cohort/base/event_count.h>
#include <cohort/remote/endpoint.h>

namespace cohort::remote {

/// What must be done by a thread that polls, before it does: to connect again, for example.
class Upkeep {
 public:
  virtual ~Upkeep() = default;
  [[nodiscard]] virtual bool is_due() const = 0;
  virtual void run() = 0;
};

class SharedEndpoint {
 public:
  /// `handler` and `upkeep`, where there is one, outlive it. @throws what Endpoint throws; WrongContext where
  /// this process listens at the task's address already: what connects would reach either of the two.
  SharedEndpoint(EndpointOptions options, Handler& handler, Upkeep* upkeep = nullptr);
  ~SharedEndpoint();
  SharedEndpoint(const SharedEndpoint&) = delete;
  SharedEndpoint& operator=(const SharedEndpoint&) = delete;

  /// For the thread whose turn it is, also by being called as handler or upkeep.
  [[nodiscard]] Endpoint& endpoint() noexcept { return endpoint_; }
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return endpoint_.incarnation(); }

  /// The use of the endpoint by one thread: for sending.
  class Turn {
   public:
    explicit Turn(SharedEndpoint& shared);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SharedEndpoint& shared_;
  };

  /// Calls `function` in a turn.
  template <class Function>
  decltype(auto) exclusively(Function&& function) {
    const Turn turn(*this);
    return std::forward<Function>(function)();
  }

  /// Polls, or lets another thread poll, until the condition is true, which reads atomically, or the deadline
  /// has passed; true if the condition came first.
  template <class Condition>
  bool wait_until(Condition condition, Deadline deadline = Deadline::never()) {
    const Waiting waiting(*this);
    return wait(
        condition, [] { return false; }, deadline);
  }

  /// The same for a thread that polls only while no other one waits.
  template <class Condition>
  void poll_until(Condition condition) {
    wait(
        condition, [this] { return waiting_.load() > 0; }, Deadline::never());
  }

  /// Polls until the condition is true, or another thread waits or polls: the thread that sees to what nobody
  /// waits for is then not woken up by those who do.
  template <class Condition>
  void poll_alone(Condition condition);

  /// Handles what has arrived, if no other thread is about to.
  void poll();

  /// Has those who wait look at their conditions.
  void notify() noexcept;

 private:
  using Clock = Deadline::Clock;

  /// A thread in wait_until. When the last one has gone, another thread must poll.
  class Waiting {
   public:
    explicit Waiting(SharedEndpoint& shared) noexcept;
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    SharedEndpoint& shared_;
  };

  /// The thread that polls, with the mutex held.
  class Polling {
   public:
    explicit Polling(SharedEndpoint& shared) noexcept;
    ~Polling();
    Polling(const Polling&) = delete;
    Polling& operator=(const Polling&) = delete;

   private:
    SharedEndpoint& shared_;
  };

  /// The deadline of a thread that waits while another one polls, which wakes it up then.
  class Limit {
   public:
    Limit(SharedEndpoint& shared, Deadline deadline);
    ~Limit();
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

   private:
    void find_earliest();

    SharedEndpoint& shared_;
    std::optional<std::multimap<Clock::time_point, Deadline>::iterator> place_;
  };

  /// Where this process listens, until nobody can connect there any more.
  class Place {
   public:
    Place() = default;
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// @throws WrongContext where this process listens there already.
    void take(const Address& address);

   private:
    std::optional<Address> address_;
  };

  template <class Condition, class GiveWay>
  bool wait(Condition& condition, GiveWay give_way, Deadline deadline);

  [[nodiscard]] bool is_upkeep_due() const { return upkeep_ != nullptr && upkeep_->is_due(); }

  /// The deadline, or that of another thread if it is earlier.
  [[nodiscard]] Deadline earliest(Deadline deadline);

  Upkeep* upkeep_;
  std::mutex mutex_;                 ///< held by the thread that uses the endpoint
  std::atomic<int> at_the_door_{0};  ///< threads that want to use it for a moment
  std::atomic<int> waiting_{0};      ///< threads in wait_until
  std::atomic<bool> polled_{false};
  EventCount progress_;
  std::mutex limits_mutex_;
  std::multimap<Clock::time_point, Deadline> limits_;
  std::atomic<Clock::time_point> earliest_limit_{Clock::time_point::max()};
  Place place_;        ///< free when the endpoint has ended, which takes as long as its last messages
  Endpoint endpoint_;  ///< last, so that it ends first
};

template <class Condition, class GiveWay>
bool SharedEndpoint::wait(Condition& condition, GiveWay give_way, Deadline deadline) {
  while (!condition()) {
    if (deadline.expired()) return condition();
    if (give_way() || !mutex_.try_lock()) {
      const Limit limit(*this, deadline);
      progress_.wait_until(
          [&] { return condition() || deadline.expired() || (!give_way() && !polled_.load()); });
      continue;
    }
    {
      const Polling polling(*this);
      if (upkeep_ != nullptr) upkeep_->run();
      const Deadline until = earliest(deadline);
      endpoint_.wait_until(
          [&] {
            progress_.notify();
            return condition() || at_the_door_.load() > 0 || give_way() || is_upkeep_due() ||
                   earliest_limit_.load() < until.at();
          },
          until);
    }
    // Those at the door go first; they are quick.
    while (at_the_door_.load() > 0) std::this_thread::yield();
  }
  return true;
}

template <class Condition>
void SharedEndpoint::poll_alone(Condition condition) {
  while (!condition() && waiting_.load() == 0 && mutex_.try_lock()) {
    {
      const Polling polling(*this);
      endpoint_.wait_until([&] { return condition() || at_the_door_.load() > 0 || waiting_.load() > 0; });
    }
    while (at_the_door_.load() > 0) std::this_thread::yield();
  }
}

}  // namespace cohort::remote
