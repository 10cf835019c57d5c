// A long call cut into segments, each of which has a share per lane.
#pragma once

#include <algorithm>
#include <cstddef>

namespace cohort::network {

class Segments {
 public:
  /// Nearly equal segments of at most `most` elements.
  Segments(std::size_t elements, std::size_t most) : elements_(elements) {
    const std::size_t limit = std::max<std::size_t>(most, 1);
    const std::size_t count = std::max<std::size_t>((elements + limit - 1) / limit, 1);
    step_ = std::max<std::size_t>((elements + count - 1) / count, 1);
  }

  [[nodiscard]] std::size_t count() const noexcept { return (elements_ + step_ - 1) / step_; }
  [[nodiscard]] std::size_t begin(std::size_t segment) const noexcept { return segment * step_; }
  [[nodiscard]] std::size_t elements(std::size_t segment) const noexcept {
    return std::min(step_, elements_ - begin(segment));
  }

 private:
  std::size_t elements_;
  std::size_t step_ = 1;
};

}  // namespace cohort::network
