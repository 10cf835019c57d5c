// The same training with parameter servers, as a task that `cohort-run --roles` has started: each worker runs
// the loop at its own pace (--strategy parameter_server), or the chief has workers run single steps
// (--strategy coordinator).
#pragma once

#include <string_view>

#include "options.h"

namespace digits {

[[nodiscard]] bool is_on_servers(std::string_view strategy);

/// What this task does, whichever it is. Returns the status of the process.
[[nodiscard]] int run_on_servers(const Options& options);

}  // namespace digits
