// The name of the host that this process runs on.
#pragma once

#include <string>

namespace cohort {

/// "unknown" where the system does not say.
[[nodiscard]] std::string host_name();

}  // namespace cohort
