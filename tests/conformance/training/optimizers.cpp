// Recorded lines of optimizers.
#include "families.h"

namespace cohort::conformance {

std::vector<Family> optimizer_families() { return {}; }

}  // namespace cohort::conformance
