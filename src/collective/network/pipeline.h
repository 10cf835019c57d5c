// How the segments of a collective over several nodes follow each other: each is opened on the node; its
// share then travels along the lane, as a task of a group; when that task is done, the segment is closed on
// the node. Segments are opened before others are closed, so that the network has something to do meanwhile.
#pragma once

#include <cstddef>
#include <vector>

#include <cohort/collective/task.h>

#include "wire.h"

namespace cohort::network {

/// `open(segment)` and `close(segment)` give tasks, each of which is awaited before the next one is made; at
/// most `in_flight` segments are open at a time. Both go from the first segment to the last, so task numbers
/// equal segment numbers if each `open` adds one task to a group.
template <class Open, class Close>
[[nodiscard]] Task<> pipeline(std::size_t segments, std::size_t in_flight, Open open, Close close) {
  std::size_t opened = 0;
  for (std::size_t closed = 0; closed < segments; ++closed) {
    for (; opened < segments && opened - closed < in_flight; ++opened) co_await open(opened);
    co_await close(closed);
  }
}

/// Memory for each segment in flight, from its first use on.
class SegmentScratch {
 public:
  SegmentScratch(Wire& wire, std::size_t in_flight, std::size_t bytes)
      : wire_(wire), bytes_(bytes), scratches_(in_flight) {}

  [[nodiscard]] std::byte* of(std::size_t segment) {
    Wire::Scratch& scratch = scratches_[segment % scratches_.size()];
    if (scratch.data() == nullptr) scratch = wire_.scratch(bytes_);
    return scratch.data();
  }

 private:
  Wire& wire_;
  std::size_t bytes_;
  std::vector<Wire::Scratch> scratches_;
};

}  // namespace cohort::network
