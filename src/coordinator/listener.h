// Polls for a worker while one of its functions takes long, so that the coordinator can ask back what waits
// behind it. Short functions do not notice: their thread polls when they have ended. The thread that runs
// functions makes a Listener, and a Running around each of them; the Listener's own thread ends with it, at
// most 5 ms later.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "server/connections.h"

namespace cohort::coordinator {

class Listener {
 public:
  explicit Listener(server::Connections& connections)
      : connections_(connections), thread_([this] { listen(); }) {}
  ~Listener() {
    over_.store(true);
    count(2);
    thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// A function runs while it exists.
  class Running {
   public:
    explicit Running(Listener& listener) noexcept : listener_(listener) { listener_.count(1); }
    ~Running() {
      listener_.count(1);
      if (listener_.polls_.load())
        listener_.connections_.notify();  // the thread that waits next polls itself
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Listener& listener_;
  };

 private:
  static constexpr std::chrono::milliseconds kShort{5};

  void count(std::uint64_t more) noexcept {
    changes_.fetch_add(more);
    changes_.notify_one();
  }

  void listen() {
    while (!over_.load()) {
      const std::uint64_t seen = changes_.load();
      const bool runs = seen % 2 == 1;
      if (!runs) {
        changes_.wait(seen);
        continue;
      }
      std::this_thread::sleep_for(kShort);
      polls_.store(true);
      connections_.poll_until([&] { return changes_.load() != seen; });
      polls_.store(false);
    }
  }

  server::Connections& connections_;
  std::atomic<bool> over_{false};
  std::atomic<bool> polls_{false};
  std::atomic<std::uint64_t> changes_{0};  ///< begins and ends of functions: odd while one runs
  std::thread thread_;                     ///< last, since it uses the others
};

}  // namespace cohort::coordinator
