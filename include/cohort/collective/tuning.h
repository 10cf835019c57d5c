// The figures by which a communicator chooses its algorithms: the sizes at which one
// protocol replaces another, and the speed of the network. Built-in figures hold until a
// probe has found better ones; a probe runs with the first collective that needs it, and
// all members agree on what it found.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort {

/// Where a figure comes from.
enum class TuningSource : std::uint8_t {
  kBuiltIn,  ///< not probed, or the probe found nothing clearly better
  kProbed,   ///< measured by the members of this job
  kFile,     ///< read from COHORT_TUNING_FILE
};

/// `built-in`, `probed` or `file`.
[[nodiscard]] std::string_view to_string(TuningSource source) noexcept;

struct TuningFigure {
  std::string_view name = {};  ///< with its unit, for example `direct_move_bytes`
  std::string_view text = {};  ///< what it decides
  double value = 0;
  TuningSource source = TuningSource::kBuiltIn;
};

}  // namespace cohort
