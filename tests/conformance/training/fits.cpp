// Recorded lines of fit, evaluate and predict.
#include "families.h"

namespace cohort::conformance {

std::vector<Family> fit_families() { return {}; }

}  // namespace cohort::conformance
