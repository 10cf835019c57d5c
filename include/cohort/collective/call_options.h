// What one collective wants beside its tensors. A call that leaves the options alone
// costs nothing for them.
#pragma once

#include <cstdint>
#include <optional>

namespace cohort {

struct CallOptions {
  /// How long this call waits for its members, in seconds; 0 waits for ever. Unset: as long as the
  /// communicator's calls do. Members may differ: the first deadline to pass ends the call on all of them.
  std::optional<double> timeout_seconds = {};

  /// Fingerprint of what else the members must agree on, for example what lies where in a tensor that
  /// holds several. 0 for nothing.
  std::uint64_t layout = 0;
};

}  // namespace cohort
