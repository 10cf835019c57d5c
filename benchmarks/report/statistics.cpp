#include "report/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "timing.h"

namespace cohort::bench {
namespace {

/// Twice the rank of each value, so that values that are equal, which share the mean of their ranks, have
/// whole numbers.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<std::size_t> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && values[order[last + 1]] == values[order[first]]) ++last;
    for (std::size_t i = first; i <= last; ++i) ranks[order[i]] = first + last + 2;
    first = last + 1;
  }
  return ranks;
}

/// In how many ways `count` of `all` can be chosen. As a double, whose 53 bits suffice for shares.
double ways_to_choose(std::size_t count, std::size_t all) {
  double ways = 1;
  for (std::size_t k = 0; k < count; ++k)
    ways = ways * static_cast<double>(all - k) / static_cast<double>(k + 1);
  return ways;
}

/// Of all ways to choose `count` of `ranks`: the shares whose sums are 0, 1, ...
std::vector<double> shares_of_sums(const std::vector<std::size_t>& ranks, std::size_t count) {
  const std::size_t most = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  // ways[k][s]: how often k of the ranks seen so far have the sum s.
  std::vector<std::vector<double>> ways(count + 1, std::vector<double>(most + 1, 0.0));
  ways[0][0] = 1;
  std::size_t so_far = 0;
  for (std::size_t seen = 0; seen < ranks.size(); ++seen) {
    so_far += ranks[seen];
    for (std::size_t k = std::min(seen + 1, count); k > 0; --k)
      for (std::size_t sum = so_far; sum >= ranks[seen]; --sum)
        ways[k][sum] += ways[k - 1][sum - ranks[seen]];
  }
  const double all = ways_to_choose(count, ranks.size());
  for (double& share : ways[count]) share /= all;
  return ways[count];
}

}  // namespace

double chance_of_larger(std::span<const double> before, std::span<const double> now) {
  std::vector<double> pooled(now.begin(), now.end());
  pooled.insert(pooled.end(), before.begin(), before.end());
  std::vector<std::size_t> ranks = doubled_ranks(pooled);
  const auto is_even = [](std::size_t rank) { return rank % 2 == 0; };
  // Without equal values, which is usual, half of the sums never occur.
  if (std::ranges::all_of(ranks, is_even))
    for (std::size_t& rank : ranks) rank /= 2;
  const auto last_of_now = ranks.begin() + static_cast<std::ptrdiff_t>(now.size());
  const std::size_t sum = std::accumulate(ranks.begin(), last_of_now, std::size_t{0});
  const std::vector<double> shares = shares_of_sums(ranks, now.size());
  return std::min(1.0, std::accumulate(shares.begin() + static_cast<std::ptrdiff_t>(sum), shares.end(), 0.0));
}

double least_chance(std::size_t before, std::size_t now) { return 1 / ways_to_choose(now, before + now); }

std::vector<double> corrected(std::span<const double> chances) {
  std::vector<std::size_t> order(chances.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return chances[i]; });
  std::vector<double> result(chances.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double tested = static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(1.0, tested * chances[order[i]]));
    result[order[i]] = largest;
  }
  return result;
}

Quotient quotient(std::span<const double> before, std::span<const double> now) {
  std::vector<double> quotients;
  for (const double old : before)
    for (const double recent : now) quotients.push_back(old / recent);
  std::ranges::sort(quotients);
  Quotient result{.estimate = median(quotients)};
  // As many of the outermost quotients lie outside as their number can be by chance in 1 of 40 cases on each
  // side.
  constexpr double kOutside = 0.025;
  std::vector<std::size_t> ranks(before.size() + now.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = i + 1;
  const std::vector<double> shares = shares_of_sums(ranks, now.size());
  const std::size_t least_sum = now.size() * (now.size() + 1) / 2;
  std::size_t outside = 0;
  for (double below = shares[least_sum]; below <= kOutside; below += shares[least_sum + outside]) ++outside;
  if (outside == 0) return result;
  result.low = quotients[outside - 1];
  result.high = quotients[quotients.size() - outside];
  return result;
}

}  // namespace cohort::bench
