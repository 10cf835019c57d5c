#include "sweep/memory_limit.h"

#include <algorithm>
#include <span>
#include <vector>

#include "private_memory.h"

namespace cohort::bench {
namespace {

constexpr int kRepetitions = 9;

/// Elements of a block: of all operands together, few enough to stay in the first-level cache until the
/// last operand has been added.
constexpr std::size_t kBlock = 512;

/// Adds `other` to `data`, and writes the sum to both. Ordinary stores: the lines were just read, so
/// writing around the caches would be slower.
void add_to_both(float* __restrict data, float* __restrict other, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = data[i] + other[i];
    data[i] = sum;
    other[i] = sum;
  }
}

/// Reads `operands` neighbouring stretches of `length` floats, and writes their sum to each. With two
/// operands this is one pass, without any step between reading and writing.
void reduce_and_spread(float* data, std::size_t operands, std::size_t length) {
  if (operands == 2) return add_to_both(data, data + length, length);
  for (std::size_t start = 0; start < length; start += kBlock) {
    const std::size_t count = std::min(kBlock, length - start);
    float* const total = data + start;
    for (std::size_t operand = 1; operand < operands; ++operand) {
      const float* const other = data + operand * length + start;
      for (std::size_t i = 0; i < count; ++i) total[i] += other[i];
    }
    for (std::size_t operand = 1; operand < operands; ++operand) {
      std::copy_n(total, count, data + operand * length + start);
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
  return *std::min_element(times_us.begin(), times_us.end());
}

}  // namespace cohort::bench
