// How a strategy's collectives behave; the fields left alone follow the settings.
#pragma once

#include <cstddef>
#include <optional>

#include <cohort/base/deadline.h>

namespace cohort {

struct CommunicationOptions {
  /// How long a collective waits for its members; 0 waits for ever. Unset: COHORT_COLLECTIVE_TIMEOUT_SECONDS.
  std::optional<double> timeout_seconds = {};

  /// How many bytes of a list of tensors share a collective. 0: small tensors go together, large ones
  /// alone. Above 0: tensors of one dtype fill a pack until it is larger than this. All workers must
  /// choose alike.
  std::size_t bytes_per_pack = 0;

  /// Reductions give the same bits for the same inputs in the order of the members, whatever the layout:
  /// threads or processes, one node or several, in place or not, packed or not. Floating-point sums and
  /// products then go from the first member to the last on the way between nodes too, which moves more
  /// bytes where nodes have several members. All workers must choose alike.
  bool reproducible = false;

  /// The deadline of a collective that starts now. @throws InvalidArgument for a negative time-out.
  [[nodiscard]] Deadline deadline() const;
};

}  // namespace cohort
