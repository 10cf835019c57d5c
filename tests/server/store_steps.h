// The memory of a store as a process leaves it that ends between any two of its instructions.
#pragma once

#include <functional>

#include "cluster/fd.h"

namespace cohort::server {

/// A child calls `prepare` and then `operation`, which is run one instruction at a time. `on_state` is called
/// with a copy of the file `descriptor` whenever the memory has become another, until something has failed.
/// Returns how often that was; 0 where processes may not be traced.
[[nodiscard]] int for_each_state(int descriptor, const std::function<void()>& prepare,
                                 const std::function<void()>& operation,
                                 const std::function<void(int copy)>& on_state);

/// A memory file with the contents of another.
[[nodiscard]] watch::Fd copy_of_store_file(int descriptor);

}  // namespace cohort::server
