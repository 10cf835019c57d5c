#include "wire.h"

#include <algorithm>
#include <bit>

namespace cohort::network {

Transfer Wire::send(int to, int tag, const std::byte* data, std::size_t bytes) {
  if (bytes == 0) return {};
  return {transport_, transport_.send({.member = to, .tag = first_tag_ + tag}, {data, bytes})};
}

Transfer Wire::receive(int from, int tag, std::byte* room, std::size_t bytes, const bool* permitted) {
  if (bytes == 0) return {};
  return {transport_, transport_.receive({.member = from, .tag = first_tag_ + tag}, {room, bytes}),
          permitted};
}

Wire::Room Wire::room(std::size_t bytes) {
  constexpr std::size_t kSmallest = 4096;
  // Few sizes, so that what one call leaves behind fits the next.
  const std::size_t size = std::bit_ceil(std::max(bytes, kSmallest));
  const auto fits = [size](const auto& buffer) { return buffer->bytes() == size; };
  const auto found = std::ranges::find_if(free_, fits);
  if (found == free_.end()) return {*this, allocate(size, Device())};
  std::shared_ptr<const Buffer> buffer = std::move(*found);
  free_.erase(found);
  return {*this, std::move(buffer)};
}

}  // namespace cohort::network
