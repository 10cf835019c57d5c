// Wakes a task that sleeps, and shows that it lives. Each endpoint has one Bell; other tasks of the node get
// its two descriptors, and ring after what they have written for it.
//
// A ringer writes to the sleeper's eventfd only if the sleeper has said that it sleeps. The sleeper says so
// and then looks once more for work, the ringer makes work and then looks whether the other sleeps, all in
// one order that both agree on: one of the two sees the other.
#pragma once

#include <atomic>
#include <cstdint>

#include "cluster/fd.h"

#include "shared_memory.h"

namespace cohort::remote {

class Bell {
 public:
  /// This task's own.
  /// @throws Unavailable when the system refuses.
  Bell();

  /// Another task's.
  /// @throws DataLoss when the descriptors are not those of a bell.
  Bell(watch::Fd page, watch::Fd event);

  /// Of this task's own.
  [[nodiscard]] int page_descriptor() const noexcept { return page_.get(); }

  /// Readable when the bell was rung; never read, so it is polled for edges.
  [[nodiscard]] int event_descriptor() const noexcept { return event_.get(); }

  /// Wakes its task if that sleeps. Any thread may call it.
  void ring() noexcept {
    if (state().asleep.load() != 0 && state().asleep.exchange(0) != 0) strike();
  }

  /// From here on `ring` wakes; afterwards look once more for work, then sleep.
  void fall_asleep() noexcept { state().asleep.store(1); }
  void awake() noexcept { state().asleep.store(0, std::memory_order_relaxed); }

  /// A sign of life to all who have this bell.
  void beat() noexcept { state().beats.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t beats() const noexcept { return state().beats.load(std::memory_order_relaxed); }

 private:
  struct State {
    alignas(64) std::atomic<std::uint32_t> asleep;
    alignas(64) std::atomic<std::uint64_t> beats;
  };
  [[nodiscard]] State& state() const noexcept { return *reinterpret_cast<State*>(view_.data()); }
  void strike() noexcept;

  explicit Bell(SharedMemory page);

  watch::Fd page_;
  View view_;
  watch::Fd event_;
};

}  // namespace cohort::remote
