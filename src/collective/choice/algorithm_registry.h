// The algorithms that programs have registered, for the life of the process.
#pragma once

#include <memory>
#include <vector>

#include <cohort/collective/algorithm.h>

namespace cohort {

/// In the order of their names, so that members that have registered the same agree on it.
[[nodiscard]] std::vector<std::shared_ptr<const Algorithm>> registered_algorithms();

}  // namespace cohort
