#include <array>

#include "collective.h"

namespace cohort::bench {

std::span<const Collective* const> collectives() {
  static constexpr std::array kAll{&kAllReduce,     &kReduce,   &kBroadcast, &kAllGather, &kAllGatherUneven,
                                   &kReduceScatter, &kAllToAll, &kGather,    &kScatter,   &kBarrier};
  return kAll;
}

}  // namespace cohort::bench
