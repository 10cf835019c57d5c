// Losses from formulas: of a row, or of one element, whose mean is the loss of a row. A formula of rows is a
// struct with two functions of T, float or double:
//
//     static constexpr bool kOfClasses = false;            // true: labels are classes, one for each row
//     T value(const Label* labels, const T* predictions, std::size_t columns) const;
//     void gradient(const Label* labels, const T* predictions, std::size_t columns, T factor, T* result)
//     const;
//
// in which `gradient` writes `factor` times the gradient of `value` by the predictions. `kMinimumColumns` and
// checks of labels are the formula's own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/train/losses/loss.h>

#include "train/rows.h"

namespace cohort {

template <class Formula>
class RowLoss final : public LossRule {
 public:
  RowLoss(std::string name, Formula formula) : name_(std::move(name)), formula_(std::move(formula)) {}

  void values(const Tensor& labels, const Tensor& predictions, const Tensor& output) const override {
    const RowLayout layout = checked_layout(labels, predictions);
    with_precision(predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      const auto y = elements_as<LabelOf<T>>(labels, Part::kLabels);
      const auto p = elements_as<T>(predictions, Part::kPredictions);
      const std::span<T> losses = output.span<T>();
      const std::size_t labels_of_row = Formula::kOfClasses ? 1 : layout.columns;
      for (std::size_t row = 0; row < layout.rows; ++row) {
        losses[row] =
            formula_.value(y.data() + row * labels_of_row, p.data() + row * layout.columns, layout.columns);
      }
    });
  }

  void gradients(const Tensor& labels, const Tensor& predictions, const Tensor* weights,
                 const Tensor& output) const override {
    const RowLayout layout = checked_layout(labels, predictions);
    with_precision(predictions.dtype(), [&]<class T>(std::type_identity<T>) {
      const RowWeights<T> factors(weights, layout.rows, name_);
      const auto y = elements_as<LabelOf<T>>(labels, Part::kLabels);
      const auto p = elements_as<T>(predictions, Part::kPredictions);
      const bool in_place = is_cpu(output) && output.dtype() == kDTypeOf<T>;
      const std::span<T> result =
          in_place ? output.span<T>() : kept_memory<T>(Part::kResult, output.elements());
      const std::size_t labels_of_row = Formula::kOfClasses ? 1 : layout.columns;
      for (std::size_t row = 0; row < layout.rows; ++row) {
        const std::size_t begin = row * layout.columns;
        formula_.gradient(y.data() + row * labels_of_row, p.data() + begin, layout.columns, factors[row],
                          result.data() + begin);
      }
      if (!in_place) store(std::span<const T>(result), output);
    });
  }

 private:
  template <class T>
  using LabelOf = std::conditional_t<Formula::kOfClasses, std::int64_t, T>;

  RowLayout checked_layout(const Tensor& labels, const Tensor& predictions) const {
    if (Formula::kOfClasses)
      require_row_labels(labels, predictions, name_);
    else
      require_same_rows(labels, predictions, name_);
    return row_layout(predictions, name_);
  }

  template <class T>
  static void store(std::span<const T> values, const Tensor& output) {
    if (!is_cpu(output))
      return output.copy_from(Tensor::from(values, output.shape()).cast(output.dtype()).to(output.device()));
    visit_dtype(output.dtype(), [&]<class To>(std::type_identity<To>) {
      std::ranges::transform(values, output.span<To>().begin(), convert_element<To, T>);
    });
  }

  std::string name_;
  Formula formula_;
};

template <class Formula>
[[nodiscard]] Loss make_row_loss(const char* name, Formula formula) {
  return {name, std::make_shared<RowLoss<Formula>>(name, std::move(formula))};
}

}  // namespace cohort

namespace cohort::losses {

// The loss of a row as the mean over its elements, of which a formula knows one:
//
//     T value(T label, T prediction) const;
//     T slope(T label, T prediction) const;    // its derivative by the prediction

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
