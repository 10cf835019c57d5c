// Moves data of any length from one member to another, in pieces of which a few are in
// flight at a time. Cost  alpha + n beta.
#pragma once

#include <cstddef>

#include <cohort/collective/task.h>

#include "lane.h"
#include "wire.h"

namespace cohort::network {

[[nodiscard]] Task<> stream_to(Wire& wire, int member, int tag, const std::byte* data, std::size_t bytes);
[[nodiscard]] Task<> stream_from(Wire& wire, int member, int tag, std::byte* into, std::size_t bytes);

/// The same along a lane.
[[nodiscard]] Task<> stream_to(Lane lane, int member, int tag, const std::byte* data, std::size_t bytes);
[[nodiscard]] Task<> stream_from(Lane lane, int member, int tag, std::byte* into, std::size_t bytes);

/// Both at once.
struct Leaving {
  int to;
  const std::byte* data;
  std::size_t bytes;
};
struct Arriving {
  int from;
  std::byte* into;
  std::size_t bytes;
};
[[nodiscard]] Task<> exchange(Lane lane, int tag, Leaving leaving, Arriving arriving);

}  // namespace cohort::network
