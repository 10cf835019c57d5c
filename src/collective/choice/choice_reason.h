// Why a collective used the algorithm that it did, as benchmarks report it.
#pragma once

#include <cstdint>
#include <string_view>

#include <cohort/collective/tuning.h>

namespace cohort {

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

}  // namespace cohort
