#include <array>

#include "collective.h"

namespace cohort::bench {

std::span<const Collective* const> collectives() {
  static constexpr std::array kAll{&kAllReduce};
  return kAll;
}

}  // namespace cohort::bench
