// The elements of a tensor that is a temporary: `f().span<float>()`. It is used like the std::span that a
// named tensor gives, and shares the storage, which therefore lives as long as it does.
//
//     for (const float weight : variable.read().span<float>()) { ... }
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace cohort {

template <class T>
class OwningSpan {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using iterator = typename std::span<T>::iterator;

  OwningSpan(std::span<T> elements, std::shared_ptr<const void> storage) noexcept
      : elements_(elements), storage_(std::move(storage)) {}

  [[nodiscard]] std::size_t size() const noexcept { return elements_.size(); }
  [[nodiscard]] bool empty() const noexcept { return elements_.empty(); }
  [[nodiscard]] T* data() const noexcept { return elements_.data(); }
  [[nodiscard]] iterator begin() const noexcept { return elements_.begin(); }
  [[nodiscard]] iterator end() const noexcept { return elements_.end(); }
  [[nodiscard]] T& operator[](std::size_t index) const { return elements_[index]; }
  [[nodiscard]] T& front() const { return elements_.front(); }
  [[nodiscard]] T& back() const { return elements_.back(); }

 private:
  std::span<T> elements_;
  std::shared_ptr<const void> storage_;
};

}  // namespace cohort
