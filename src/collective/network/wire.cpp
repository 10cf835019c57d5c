#include "wire.h"

namespace cohort::network {

Transfer Wire::send(int to, int tag, const std::byte* data, std::size_t bytes) {
  if (bytes == 0) return {};
  return {transport_, transport_.send({.member = to, .tag = first_tag_ + tag}, {data, bytes})};
}

Transfer Wire::receive(int from, int tag, std::byte* into, std::size_t bytes, const bool* permitted) {
  if (bytes == 0) return {};
  return {transport_, transport_.receive({.member = from, .tag = first_tag_ + tag}, {into, bytes}),
          permitted};
}

}  // namespace cohort::network
