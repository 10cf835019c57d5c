#include "memory_limit.h"

#include <algorithm>
#include <span>
#include <vector>

#include "private_memory.h"
#include "statistics.h"

namespace cohort::bench {
namespace {

constexpr int kRepetitions = 9;

/// Elements that are added at a time: few enough to stay in the first-level cache.
constexpr std::size_t kBlock = 1024;

/// Reads `operands` neighbouring stretches of `length` floats, and writes their sum to each. Ordinary
/// stores: the lines were just read, so writing around the caches would be slower.
void reduce_and_spread(float* data, std::size_t operands, std::size_t length) {
  float sum[kBlock];
  for (std::size_t start = 0; start < length; start += kBlock) {
    const std::size_t count = std::min(kBlock, length - start);
    const float* first = data + start;
    std::copy_n(first, count, sum);
    for (std::size_t operand = 1; operand < operands; ++operand) {
      const float* other = data + operand * length + start;
      for (std::size_t i = 0; i < count; ++i) sum[i] += other[i];
    }
    for (std::size_t operand = 0; operand < operands; ++operand) {
      std::copy_n(sum, count, data + operand * length + start);
    }
  }
}

}  // namespace

double measure_memory_limit(const MemoryLimitProblem& problem, const Team& team, const TickClock& clock) {
  const auto operands = static_cast<std::size_t>(problem.members);
  const std::size_t length = problem.bytes / sizeof(float) / operands;
  const PrivateMemory memory(length * operands * sizeof(float), problem.huge_pages);
  auto* data = reinterpret_cast<float*>(memory.bytes().data());
  std::vector<double> times_us;
  for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
    // As before a timed call: what was just written is partly still in the caches. Sums of zeros stay small.
    std::fill_n(data, length * operands, 0.0f);
    team.barrier();
    const std::uint64_t before = clock.now();
    reduce_and_spread(data, operands, length);
    times_us.push_back(clock.microseconds(clock.now() - before));
  }
  times_us.erase(times_us.begin());  // it touched the memory first
  team.take_maximum(times_us);
  return median(times_us);
}

}  // namespace cohort::bench
