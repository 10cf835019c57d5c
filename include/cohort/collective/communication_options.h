// How a strategy's collectives behave; the fields left alone follow the settings.
#pragma once

#include <optional>

#include <cohort/base/deadline.h>

namespace cohort {

struct CommunicationOptions {
  /// How long a collective waits for its members; 0 waits for ever. Unset: COHORT_COLLECTIVE_TIMEOUT_SECONDS.
  std::optional<double> timeout_seconds = {};

  /// The deadline of a collective that starts now. @throws InvalidArgument for a negative time-out.
  [[nodiscard]] Deadline deadline() const;
};

}  // namespace cohort
