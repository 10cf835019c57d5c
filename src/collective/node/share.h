// How the members of a node divide the work of a call.
#pragma once

#include <algorithm>
#include <cstddef>

namespace cohort::node {

/// A part of the work, in bytes of the whole.
struct Share {
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

/// Nearly equal shares that begin at cache lines of an aligned buffer, so that no cache line has two writers.
[[nodiscard]] inline Share share_of(int member, int members, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  const std::size_t lines = (bytes + kLine - 1) / kLine;
  const auto edge = [&](int index) {
    return std::min(bytes,
                    lines * static_cast<std::size_t>(index) / static_cast<std::size_t>(members) * kLine);
  };
  return {edge(member), edge(member + 1) - edge(member)};
}

}  // namespace cohort::node
