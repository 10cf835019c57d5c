// Why a collective used the algorithm that it did, and which ones the large calls of this process have used.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/tuning.h>

namespace cohort {

/// Why a collective used the algorithm that it did, as benchmarks report it.
enum class ChoiceReason : std::uint8_t {
  kSize,    ///< small calls leave no choice
  kModel,   ///< built-in figures, or there was no choice
  kProbe,   ///< figures that the probe found
  kFile,    ///< figures from COHORT_TUNING_FILE
  kForced,  ///< COHORT_ALGORITHM
};

[[nodiscard]] constexpr std::string_view to_string(ChoiceReason reason) noexcept {
  switch (reason) {
    case ChoiceReason::kSize: return "size";
    case ChoiceReason::kModel: return "model";
    case ChoiceReason::kProbe: return "probe";
    case ChoiceReason::kFile: return "file";
    case ChoiceReason::kForced: return "forced";
  }
  return "unknown";
}

/// The reason of a choice that a figure from `source` decided.
[[nodiscard]] constexpr ChoiceReason reason_of(TuningSource source) noexcept {
  switch (source) {
    case TuningSource::kBuiltIn: break;
    case TuningSource::kProbed: return ChoiceReason::kProbe;
    case TuningSource::kFile: return ChoiceReason::kFile;
  }
  return ChoiceReason::kModel;
}

struct LoggedChoice {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  std::string algorithm = {};
  ChoiceReason reason = ChoiceReason::kModel;
  std::uint64_t calls = 0;
  std::size_t least_bytes = 0;
  std::size_t most_bytes = 0;
};

/// Which algorithms the large calls of this process have used, and for which sizes. Small calls have no
/// choice and are not noted. Off unless somebody wants to know; then a large call takes a lock more. Any
/// thread may call.
class ChoiceLog {
 public:
  [[nodiscard]] static ChoiceLog& of_this_process();

  /// From now on.
  void turn_on() noexcept { is_on_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  void note(const CollectiveCall& call, std::string_view algorithm, ChoiceReason reason);

  /// By kind, and by size among those of a kind.
  [[nodiscard]] std::vector<LoggedChoice> choices() const;

 private:
  std::atomic<bool> is_on_{false};
  mutable std::mutex mutex_;
  std::vector<LoggedChoice> choices_;  ///< few, for there are few algorithms
};

}  // namespace cohort
