#include <array>

#include "broadcast.h"
#include "chain.h"
#include "halving_doubling.h"
#include "lane_algorithm.h"
#include "rank_order.h"
#include "recursive_doubling.h"
#include "reduce.h"
#include "ring.h"

namespace cohort::network {

std::span<const LaneAlgorithm* const> lane_algorithms() noexcept {
  static constexpr std::array kAll{&kRecursiveDoubling,
                                   &kRing,
                                   &kHalvingDoubling,
                                   &kRankOrder,
                                   &kChain,
                                   &kBinomial,
                                   &kScatterAllGather,
                                   &kHalvingBroadcast,
                                   &kBinomialReduce,
                                   &kHalvingReduce,
                                   &kRingReduce};
  return kAll;
}

}  // namespace cohort::network
