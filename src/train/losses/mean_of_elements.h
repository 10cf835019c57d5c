// The loss of a row as the mean over its elements, of which a formula knows one:
//
//     T value(T label, T prediction) const;
//     T slope(T label, T prediction) const;    // its derivative by the prediction
#pragma once

#include <cstddef>

#include "train/losses/row_loss.h"
#include "train/rows.h"

namespace cohort::losses {

/// What keeps logarithms and divisions finite.
template <class T>
inline constexpr T kSmallest = static_cast<T>(1e-7);

template <class Element>
struct MeanOfElements {
  static constexpr bool kOfClasses = false;
  Element element;

  template <class T>
  T value(const T* labels, const T* predictions, std::size_t columns) const {
    return sum_of<T>(columns, [&](std::size_t i) { return element.value(labels[i], predictions[i]); }) /
           static_cast<T>(columns);
  }
  template <class T>
  void gradient(const T* labels, const T* predictions, std::size_t columns, T factor, T* result) const {
    const T share = factor / static_cast<T>(columns);
    for (std::size_t i = 0; i < columns; ++i) result[i] = share * element.slope(labels[i], predictions[i]);
  }
};

template <class Element>
[[nodiscard]] Loss make_element_loss(const char* name, Element element) {
  return make_row_loss(name, MeanOfElements<Element>{element});
}

}  // namespace cohort::losses
