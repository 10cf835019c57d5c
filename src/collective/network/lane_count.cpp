#include "lane_count.h"

#include <algorithm>

namespace cohort::network {
namespace {

/// A choice may be slower than the best by this much.
constexpr double kNearly = 1.1;

/// More lanes that gain less than this show that the link is full.
constexpr double kGain = 1.05;

double cost(const LaneRate& rate, double reduce_seconds_per_byte) {
  return 2 * rate.seconds_per_byte + reduce_seconds_per_byte / rate.lanes;
}

}  // namespace

const LaneRate& choose_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte) {
  const auto cost_of = [&](const LaneRate& rate) { return cost(rate, reduce_seconds_per_byte); };
  const double best = cost_of(*std::ranges::min_element(rates, {}, cost_of));
  return *std::ranges::find_if(rates, [&](const LaneRate& rate) { return cost_of(rate) <= kNearly * best; });
}

bool may_gain_from_more_lanes(std::span<const LaneRate> rates, double reduce_seconds_per_byte) {
  if (rates.size() < 2) return true;
  const LaneRate& before = rates[rates.size() - 2];
  return cost(before, reduce_seconds_per_byte) > kGain * cost(rates.back(), reduce_seconds_per_byte);
}

}  // namespace cohort::network
