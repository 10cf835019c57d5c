#include <cohort/input/split.h>

#include <algorithm>

namespace cohort {

RowRange part_of(std::int64_t rows, int replica, int replicas) {
  const std::int64_t shortest = rows / replicas;
  const std::int64_t longer = rows % replicas;
  const std::int64_t begin = replica * shortest + std::min<std::int64_t>(replica, longer);
  return {begin, begin + shortest + (replica < longer ? 1 : 0)};
}

}  // namespace cohort
