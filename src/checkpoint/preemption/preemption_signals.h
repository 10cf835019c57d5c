// Notices signals that ask this process to end soon, and leaves it running. Handlers are per process: several
// objects, as of workers that are threads, all see a signal. When the last of them is destroyed, the signals
// are handled as before.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

namespace cohort::checkpoint {

struct ReceivedSignal {
  int signal = 0;
  std::chrono::steady_clock::time_point at = {};
};

class PreemptionSignals {
 public:
  /// @throws InvalidArgument for a number that is no signal or cannot be handled.
  explicit PreemptionSignals(std::vector<int> signals);
  ~PreemptionSignals();
  PreemptionSignals(const PreemptionSignals&) = delete;
  PreemptionSignals& operator=(const PreemptionSignals&) = delete;

  /// The latest signal since this object was made.
  [[nodiscard]] std::optional<ReceivedSignal> received() const;

  /// From the end of this object on, the signals are ignored: this process ends by itself, and a launcher
  /// that ends all workers when the first one has ended must not change its status.
  void ignore_from_now_on() noexcept { ignored_afterwards_ = true; }

 private:
  void release(std::size_t count);

  std::vector<int> signals_;
  int count_at_start_;
  bool ignored_afterwards_ = false;
};

}  // namespace cohort::checkpoint
