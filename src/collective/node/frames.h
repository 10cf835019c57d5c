// Memory for coroutine frames: a collective makes a few, of the same sizes as the one
// before, so each thread keeps what it freed last.
#pragma once

#include <cstddef>

namespace cohort::node {

[[nodiscard]] void* allocate_frame(std::size_t bytes);
void release_frame(void* frame, std::size_t bytes) noexcept;

}  // namespace cohort::node
