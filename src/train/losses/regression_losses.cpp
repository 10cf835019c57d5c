#include <cohort/train/losses/regression_losses.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <cohort/base/error.h>

#include "row_loss.h"
#include "train/losses/row_loss.h"

namespace cohort::losses {
namespace {

template <class T>
T sign(T value) {
  return static_cast<T>((value > 0) - (value < 0));
}

struct SquaredError {
  template <class T>
  T value(T label, T prediction) const {
    return (prediction - label) * (prediction - label);
  }
  template <class T>
  T slope(T label, T prediction) const {
    return 2 * (prediction - label);
  }
};

struct AbsoluteError {
  template <class T>
  T value(T label, T prediction) const {
    return std::abs(prediction - label);
  }
  template <class T>
  T slope(T label, T prediction) const {
    return sign(prediction - label);
  }
};

struct AbsolutePercentageError {
  template <class T>
  T value(T label, T prediction) const {
    return 100 * std::abs(prediction - label) / std::max(std::abs(label), kSmallest<T>);
  }
  template <class T>
  T slope(T label, T prediction) const {
    return 100 * sign(prediction - label) / std::max(std::abs(label), kSmallest<T>);
  }
};

struct SquaredLogarithmicError {
  template <class T>
  T value(T label, T prediction) const {
    const T error = difference(label, prediction);
    return error * error;
  }
  template <class T>
  T slope(T label, T prediction) const {
    return prediction > kSmallest<T> ? 2 * difference(label, prediction) / (1 + prediction) : 0;
  }
  template <class T>
  static T difference(T label, T prediction) {
    return std::log1p(std::max(prediction, kSmallest<T>)) - std::log1p(std::max(label, kSmallest<T>));
  }
};

struct LogCosh {
  // log cosh e = |e| + log(1 + exp(-2 |e|)) - log 2, in which nothing overflows.
  template <class T>
  T value(T label, T prediction) const {
    const T error = std::abs(prediction - label);
    return error + std::log1p(std::exp(-2 * error)) - std::numbers::ln2_v<T>;
  }
  template <class T>
  T slope(T label, T prediction) const {
    return std::tanh(prediction - label);
  }
};

struct Huber {
  double delta;
  template <class T>
  T value(T label, T prediction) const {
    const T limit = static_cast<T>(delta);
    const T error = std::abs(prediction - label);
    return error <= limit ? error * error / 2 : limit * error - limit * limit / 2;
  }
  template <class T>
  T slope(T label, T prediction) const {
    const T limit = static_cast<T>(delta);
    return std::clamp(prediction - label, -limit, limit);
  }
};

struct Poisson {
  template <class T>
  T value(T label, T prediction) const {
    return prediction - label * std::log(prediction + kSmallest<T>);
  }
  template <class T>
  T slope(T label, T prediction) const {
    return 1 - label / (prediction + kSmallest<T>);
  }
};

struct CosineSimilarity {
  static constexpr bool kOfClasses = false;

  template <class T>
  T value(const T* labels, const T* predictions, std::size_t columns) const {
    return -cosine(labels, predictions, columns, norm(labels, columns), norm(predictions, columns));
  }
  // d(-cos)/dp = (cos p / |p| - y / |y|) / |p|.
  template <class T>
  void gradient(const T* labels, const T* predictions, std::size_t columns, T factor, T* result) const {
    const T of_labels = norm(labels, columns);
    const T of_predictions = norm(predictions, columns);
    const T cos = cosine(labels, predictions, columns, of_labels, of_predictions);
    for (std::size_t i = 0; i < columns; ++i) {
      result[i] = factor * (cos * predictions[i] / of_predictions - labels[i] / of_labels) / of_predictions;
    }
  }

 private:
  template <class T>
  static T norm(const T* row, std::size_t columns) {
    const T squares = sum_of<T>(columns, [&](std::size_t i) { return row[i] * row[i]; });
    return std::max(std::sqrt(squares), kSmallest<T>);
  }
  template <class T>
  static T cosine(const T* labels, const T* predictions, std::size_t columns, T of_labels, T of_predictions) {
    const T product = sum_of<T>(columns, [&](std::size_t i) { return labels[i] * predictions[i]; });
    return product / of_labels / of_predictions;
  }
};

}  // namespace

Loss mean_squared_error() { return make_element_loss("mean_squared_error", SquaredError{}); }
Loss mean_absolute_error() { return make_element_loss("mean_absolute_error", AbsoluteError{}); }
Loss mean_absolute_percentage_error() {
  return make_element_loss("mean_absolute_percentage_error", AbsolutePercentageError{});
}
Loss mean_squared_logarithmic_error() {
  return make_element_loss("mean_squared_logarithmic_error", SquaredLogarithmicError{});
}
Loss log_cosh() { return make_element_loss("log_cosh", LogCosh{}); }
Loss huber(double delta) {
  if (!(delta > 0)) throw InvalidArgument("huber: delta is {}; give a number above 0", delta);
  return make_element_loss("huber", Huber{delta});
}
Loss poisson() { return make_element_loss("poisson", Poisson{}); }
Loss cosine_similarity() { return make_row_loss("cosine_similarity", CosineSimilarity{}); }

}  // namespace cohort::losses
