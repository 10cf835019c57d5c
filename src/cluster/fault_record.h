// The first fault that a PeerWatch has noticed, and the exit status that follows from it. Its readers co-own
// it, so that they may read it even after the watch has ended. Any thread may read.
#pragma once

#include <sysexits.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>

namespace cohort {

class FaultRecord {
 public:
  FaultRecord() = default;
  FaultRecord(const FaultRecord&) = delete;
  FaultRecord& operator=(const FaultRecord&) = delete;

  /// Null while there is none; stays valid. Cheap enough for polling.
  [[nodiscard]] const Error* fault() const noexcept { return published_.load(std::memory_order_acquire); }

  /// The same, after a wait of at most `limit` for one.
  [[nodiscard]] const Error* wait_for_fault(std::chrono::milliseconds limit) const {
    constexpr auto kNap = std::chrono::milliseconds(1);
    for (const Deadline deadline = Deadline::after(limit); fault() == nullptr && !deadline.expired();)
      std::this_thread::sleep_for(kNap);
    return fault();
  }

  /// Called once, by the watch.
  void publish(Error fault) {
    fault_.emplace(std::move(fault));
    published_.store(&*fault_, std::memory_order_release);
  }

 private:
  std::optional<Error> fault_;
  std::atomic<const Error*> published_{nullptr};
};

/// The status of a process that ends because of `fault`, or by a failure of its own where that is null. The
/// launcher may hear of this end before it hears of the lost worker's, and the job's status is then this one:
/// `cohort-run --restarts` tells by it that a worker is lost.
[[nodiscard]] inline int exit_status_after(const Error* fault) noexcept {
  return fault != nullptr && fault->code() == ErrorCode::kUnavailable ? EX_TEMPFAIL : 1;
}

}  // namespace cohort
