#include <cohort/input/split.h>

#include <algorithm>
#include <cstddef>

namespace cohort {

RowRange part_of(std::int64_t rows, int replica, int replicas) {
  const std::int64_t shortest = rows / replicas;
  const std::int64_t longer = rows % replicas;
  const std::int64_t begin = replica * shortest + std::min<std::int64_t>(replica, longer);
  return {begin, begin + shortest + (replica < longer ? 1 : 0)};
}

std::vector<std::int64_t> rebatch_sizes(std::int64_t global_batch, const WorkerPlace& place) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(static_cast<std::size_t>(place.replicas()));
  for (int replica = 0; replica < place.replicas(); ++replica) {
    const RowRange part = part_of(global_batch, replica, place.replicas());
    sizes.push_back(part.end - part.begin);
  }
  std::rotate(sizes.begin(), sizes.begin() + std::ptrdiff_t{place.worker} * place.replicas_per_worker,
              sizes.end());
  return sizes;
}

}  // namespace cohort
