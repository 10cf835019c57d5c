// The buffer of a shuffle: elements that were read and not yet drawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace cohort::detail {

template <class T>
class ShuffleBuffer {
 public:
  /// A buffer of `capacity` elements; unset: of all elements.
  ShuffleBuffer(const std::mt19937_64& random, std::optional<std::int64_t> capacity, std::vector<T> held = {})
      : random_(random), capacity_(capacity), held_(std::move(held)) {}

  /// Fills the buffer with what `read()` returns, until it returns nothing, and draws one of the elements in
  /// it.
  template <class Read>
  [[nodiscard]] std::optional<T> draw(const Read& read) {
    while (!source_ended_ && (!capacity_ || static_cast<std::int64_t>(held_.size()) < *capacity_)) {
      std::optional<T> element = read();
      if (element)
        held_.push_back(std::move(*element));
      else
        source_ended_ = true;
    }
    if (held_.empty()) return std::nullopt;
    // Not std::uniform_int_distribution, whose results differ between standard libraries.
    std::swap(held_[static_cast<std::size_t>(random_() % held_.size())], held_.back());
    T drawn = std::move(held_.back());
    held_.pop_back();
    return drawn;
  }

  [[nodiscard]] const std::mt19937_64& random() const { return random_; }
  [[nodiscard]] const std::vector<T>& held() const { return held_; }

 private:
  std::mt19937_64 random_;
  std::optional<std::int64_t> capacity_;
  std::vector<T> held_;
  bool source_ended_ = false;
};

}  // namespace cohort::detail
