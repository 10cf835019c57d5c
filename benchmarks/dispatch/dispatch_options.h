// How the strategy layer's own cost is measured.
#pragma once

namespace cohort::bench {

struct DispatchOptions {
  int loops = 5;  ///< per figure, of which the median counts
};

}  // namespace cohort::bench
