// Recorded lines of learning-rate schedules.
#include "families.h"

namespace cohort::conformance {

std::vector<Family> schedule_families() { return {}; }

}  // namespace cohort::conformance
