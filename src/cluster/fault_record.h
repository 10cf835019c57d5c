// The first fault that a PeerWatch has noticed. Its readers co-own it, so that they may read it even after
// the watch has ended. Any thread may read.
#pragma once

#include <atomic>
#include <optional>
#include <utility>

#include <cohort/base/error.h>

namespace cohort {

class FaultRecord {
 public:
  FaultRecord() = default;
  FaultRecord(const FaultRecord&) = delete;
  FaultRecord& operator=(const FaultRecord&) = delete;

  /// Null while there is none; stays valid. Cheap enough for polling.
  [[nodiscard]] const Error* fault() const noexcept { return published_.load(std::memory_order_acquire); }

  /// Called once, by the watch.
  void publish(Error fault) {
    fault_.emplace(std::move(fault));
    published_.store(&*fault_, std::memory_order_release);
  }

 private:
  std::optional<Error> fault_;
  std::atomic<const Error*> published_{nullptr};
};

}  // namespace cohort
