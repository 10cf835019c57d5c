#include <cohort/train/losses/classification_losses.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <cohort/base/error.h>

#include "row_loss.h"
#include "train/losses/row_loss.h"

namespace cohort::losses {
namespace {

template <class T>
T clipped(T probability) {
  return std::clamp(probability, kSmallest<T>, 1 - kSmallest<T>);
}

/// Whether a probability stays as it is: a change of another one changes nothing.
template <class T>
bool is_inside(T probability) {
  return probability >= kSmallest<T> && probability <= 1 - kSmallest<T>;
}

template <class T>
T smoothed(T label, double smoothing, double classes) {
  return label * static_cast<T>(1 - smoothing) + static_cast<T>(smoothing / classes);
}

void require_smoothing(double smoothing, const char* name) {
  if (smoothing >= 0 && smoothing <= 1) return;
  throw InvalidArgument("{}: label_smoothing is {}; give 0 to 1", name, smoothing);
}

// ---- two-valued labels

struct BinaryCrossentropy {
  double smoothing;
  template <class T>
  T value(T label, T prediction) const {
    const T y = smoothed(label, smoothing, 2);
    const T p = clipped(prediction);
    return -y * std::log(p) - (1 - y) * std::log(1 - p);
  }
  template <class T>
  T slope(T label, T prediction) const {
    if (!is_inside(prediction)) return 0;
    return (prediction - smoothed(label, smoothing, 2)) / (prediction * (1 - prediction));
  }
};

/// max(x, 0) - x y + log(1 + exp(-|x|)).
struct BinaryCrossentropyOfLogits {
  double smoothing;
  template <class T>
  T value(T label, T logit) const {
    return std::max(logit, T(0)) - logit * smoothed(label, smoothing, 2) +
           std::log1p(std::exp(-std::abs(logit)));
  }
  template <class T>
  T slope(T label, T logit) const {
    return sigmoid(logit) - smoothed(label, smoothing, 2);
  }
};

struct BinaryFocal {
  FocalOptions options;

  template <class T>
  T value(T label, T prediction) const {
    const T y = smoothed(label, options.label_smoothing, 2);
    const T p = options.from_logits ? sigmoid(prediction) : prediction;
    return balance(y) * std::pow(miss(y, p), static_cast<T>(options.gamma)) * crossentropy(y, p);
  }
  template <class T>
  T slope(T label, T prediction) const {
    const T y = smoothed(label, options.label_smoothing, 2);
    const T p = options.from_logits ? sigmoid(prediction) : prediction;
    const T gamma = static_cast<T>(options.gamma);
    const T missed = miss(y, p);
    const T of_power =
        missed == 0 ? 0 : gamma * std::pow(missed, gamma - 1) * (1 - 2 * y) * crossentropy(y, p);
    const T of_entropy = is_inside(p) ? std::pow(missed, gamma) * (p - y) / (p * (1 - p)) : 0;
    return balance(y) * (of_power + of_entropy) * (options.from_logits ? p * (1 - p) : 1);
  }

 private:
  template <class T>
  T balance(T y) const {
    if (!options.alpha) return 1;
    const T alpha = static_cast<T>(*options.alpha);
    return y * alpha + (1 - y) * (1 - alpha);
  }
  template <class T>
  static T miss(T y, T p) {
    return 1 - (y * p + (1 - y) * (1 - p));
  }
  template <class T>
  static T crossentropy(T y, T p) {
    return BinaryCrossentropy{0}.value(y, p);
  }
};

template <class T>
T of_hinge(T label) {
  return label == 0 ? -1 : label;
}

struct Hinge {
  template <class T>
  T value(T label, T prediction) const {
    return std::max(1 - of_hinge(label) * prediction, T(0));
  }
  template <class T>
  T slope(T label, T prediction) const {
    return of_hinge(label) * prediction < 1 ? -of_hinge(label) : 0;
  }
};

struct SquaredHinge {
  template <class T>
  T value(T label, T prediction) const {
    const T missing = Hinge().value(label, prediction);
    return missing * missing;
  }
  template <class T>
  T slope(T label, T prediction) const {
    return -2 * of_hinge(label) * Hinge().value(label, prediction);
  }
};

// ---- distributions over classes

template <class T>
T sum(const T* row, std::size_t columns) {
  return sum_of<T>(columns, [&](std::size_t i) { return row[i]; });
}

/// log sum exp, of which the largest part is taken out first.
template <class T>
T log_of_sum_of_exp(const T* logits, std::size_t columns) {
  const T largest = *std::max_element(logits, logits + columns);
  if (!std::isfinite(largest)) return largest;
  return largest + std::log(sum_of<T>(columns, [&](std::size_t i) { return std::exp(logits[i] - largest); }));
}

template <class T>
void softmax(const T* logits, std::size_t columns, T factor, T* result) {
  const T largest = *std::max_element(logits, logits + columns);
  for (std::size_t i = 0; i < columns; ++i) result[i] = std::exp(logits[i] - largest);
  const T scale = factor / sum(result, columns);
  for (std::size_t i = 0; i < columns; ++i) result[i] *= scale;
}

struct CategoricalCrossentropyOfLogits {
  static constexpr bool kOfClasses = false;
  double smoothing;

  template <class T>
  T value(const T* labels, const T* logits, std::size_t columns) const {
    const T log_sum = log_of_sum_of_exp(logits, columns);
    const double classes = static_cast<double>(columns);
    return sum_of<T>(columns, [&](std::size_t i) {
      return smoothed(labels[i], smoothing, classes) * (log_sum - logits[i]);
    });
  }
  template <class T>
  void gradient(const T* labels, const T* logits, std::size_t columns, T factor, T* result) const {
    const double classes = static_cast<double>(columns);
    const auto label = [&](std::size_t i) { return smoothed(labels[i], smoothing, classes); };
    softmax(logits, columns, factor * sum_of<T>(columns, label), result);
    for (std::size_t i = 0; i < columns; ++i) result[i] -= factor * label(i);
  }
};

struct CategoricalCrossentropy {
  static constexpr bool kOfClasses = false;
  double smoothing;

  template <class T>
  T value(const T* labels, const T* predictions, std::size_t columns) const {
    const T total = sum(predictions, columns);
    const double classes = static_cast<double>(columns);
    return -sum_of<T>(columns, [&](std::size_t i) {
      return smoothed(labels[i], smoothing, classes) * std::log(clipped(predictions[i] / total));
    });
  }
  // With q = p / S: d/dp_j = (sum of y_i - y_j / q_j) / S, both over the q that are not clipped.
  template <class T>
  void gradient(const T* labels, const T* predictions, std::size_t columns, T factor, T* result) const {
    const T total = sum(predictions, columns);
    const double classes = static_cast<double>(columns);
    T counted = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const T y = smoothed(labels[i], smoothing, classes);
      const T q = predictions[i] / total;
      result[i] = is_inside(q) ? -y / q : 0;
      counted += is_inside(q) ? y : 0;
    }
    for (std::size_t i = 0; i < columns; ++i) result[i] = factor * (result[i] + counted) / total;
  }
};

/// sum_i alpha y_i (1 - q_i)^gamma (-log q_i), where q are the probabilities, which sum up to 1.
struct CategoricalFocal {
  static constexpr bool kOfClasses = false;
  FocalOptions options;

  template <class T>
  T value(const T* labels, const T* predictions, std::size_t columns) const {
    const Normalized<T> probability(predictions, columns, options.from_logits);
    return sum_of<T>(columns, [&](std::size_t i) {
      const T q = clipped(probability(i));
      return -label(labels[i], columns) * std::pow(1 - q, static_cast<T>(options.gamma)) * std::log(q);
    });
  }
  // d/dx_j = (g_j - sum g_i q_i) q_j by logits, where g is the gradient by q, and (g_j - sum g_i q_i) / S by
  // probabilities of the sum S.
  template <class T>
  void gradient(const T* labels, const T* predictions, std::size_t columns, T factor, T* result) const {
    const Normalized<T> probability(predictions, columns, options.from_logits);
    const T gamma = static_cast<T>(options.gamma);
    T common = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const T q = probability(i);
      const T slope = gamma * std::pow(1 - q, gamma - 1) * std::log(q) - std::pow(1 - q, gamma) / q;
      result[i] = is_inside(q) ? label(labels[i], columns) * slope : 0;
      common += result[i] * q;
    }
    for (std::size_t i = 0; i < columns; ++i)
      result[i] =
          factor * (result[i] - common) * (options.from_logits ? probability(i) : 1 / probability.total);
  }

 private:
  template <class T>
  struct Normalized {
    Normalized(const T* numbers, std::size_t columns, bool logits)
        : row(numbers),
          shift(logits ? log_of_sum_of_exp(numbers, columns) : 0),
          total(logits ? 1 : sum(numbers, columns)),
          of_logits(logits) {}
    T operator()(std::size_t i) const { return of_logits ? std::exp(row[i] - shift) : row[i] / total; }
    const T* row;
    T shift;
    T total;
    bool of_logits;
  };

  template <class T>
  T label(T label, std::size_t columns) const {
    return static_cast<T>(options.alpha.value_or(0.25)) *
           smoothed(label, options.label_smoothing, static_cast<double>(columns));
  }
};

struct KlDivergence {
  static constexpr bool kOfClasses = false;
  template <class T>
  static T kept(T probability) {
    return std::clamp(probability, kSmallest<T>, T(1));
  }
  template <class T>
  T value(const T* labels, const T* predictions, std::size_t columns) const {
    return sum_of<T>(columns, [&](std::size_t i) {
      return kept(labels[i]) * std::log(kept(labels[i]) / kept(predictions[i]));
    });
  }
  template <class T>
  void gradient(const T* labels, const T* predictions, std::size_t columns, T factor, T* result) const {
    for (std::size_t i = 0; i < columns; ++i) {
      const bool is_kept = predictions[i] >= kSmallest<T> && predictions[i] <= 1;
      result[i] = is_kept ? -factor * kept(labels[i]) / predictions[i] : 0;
    }
  }
};

struct CategoricalHinge {
  static constexpr bool kOfClasses = false;
  template <class T>
  T value(const T* labels, const T* predictions, std::size_t columns) const {
    const std::size_t other = best_other(labels, predictions, columns);
    return std::max(missing(labels, predictions, columns, other), T(0));
  }
  template <class T>
  void gradient(const T* labels, const T* predictions, std::size_t columns, T factor, T* result) const {
    const std::size_t other = best_other(labels, predictions, columns);
    const bool is_missing = missing(labels, predictions, columns, other) > 0;
    for (std::size_t i = 0; i < columns; ++i) result[i] = is_missing ? -factor * labels[i] : 0;
    if (is_missing) result[other] += factor * (1 - labels[other]);
  }

 private:
  template <class T>
  static std::size_t best_other(const T* labels, const T* predictions, std::size_t columns) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < columns; ++i)
      if ((1 - labels[i]) * predictions[i] > (1 - labels[best]) * predictions[best]) best = i;
    return best;
  }
  template <class T>
  static T missing(const T* labels, const T* predictions, std::size_t columns, std::size_t other) {
    const T own = sum_of<T>(columns, [&](std::size_t i) { return labels[i] * predictions[i]; });
    return (1 - labels[other]) * predictions[other] - own + 1;
  }
};

// ---- classes

constexpr const char* kSparse = "sparse_categorical_crossentropy";

template <class T>
void fill_with_zeros(T* result, std::size_t columns) {
  std::fill_n(result, columns, T(0));
}

struct SparseCrossentropyOfLogits {
  static constexpr bool kOfClasses = true;
  std::optional<std::int64_t> ignored;

  template <class T>
  T value(const std::int64_t* label, const T* logits, std::size_t columns) const {
    if (*label == ignored) return 0;
    const std::size_t own = class_of(*label, columns, kSparse);
    return log_of_sum_of_exp(logits, columns) - logits[own];
  }
  template <class T>
  void gradient(const std::int64_t* label, const T* logits, std::size_t columns, T factor, T* result) const {
    if (*label == ignored) return fill_with_zeros(result, columns);
    const std::size_t own = class_of(*label, columns, kSparse);
    softmax(logits, columns, factor, result);
    result[own] -= factor;
  }
};

/// log sum p - log p of the label.
struct SparseCrossentropy {
  static constexpr bool kOfClasses = true;
  std::optional<std::int64_t> ignored;

  template <class T>
  T value(const std::int64_t* label, const T* predictions, std::size_t columns) const {
    if (*label == ignored) return 0;
    const std::size_t own = class_of(*label, columns, kSparse);
    return std::log(total(predictions, columns)) - std::log(clipped(predictions[own]));
  }
  template <class T>
  void gradient(const std::int64_t* label, const T* predictions, std::size_t columns, T factor,
                T* result) const {
    if (*label == ignored) return fill_with_zeros(result, columns);
    const std::size_t own = class_of(*label, columns, kSparse);
    const T share = factor / total(predictions, columns);
    for (std::size_t i = 0; i < columns; ++i) result[i] = is_inside(predictions[i]) ? share : 0;
    if (is_inside(predictions[own])) result[own] -= factor / predictions[own];
  }

 private:
  template <class T>
  static T total(const T* predictions, std::size_t columns) {
    return sum_of<T>(columns, [&](std::size_t i) { return clipped(predictions[i]); });
  }
};

void require_usable(const FocalOptions& options, const char* name) {
  require_smoothing(options.label_smoothing, name);
  if (!std::isfinite(options.gamma) || options.gamma < 0)
    throw InvalidArgument("{}: gamma is {}; it must be a finite number, and not negative", name,
                          options.gamma);
}

}  // namespace

Loss binary_crossentropy(const CrossentropyOptions& options) {
  constexpr const char* kName = "binary_crossentropy";
  require_smoothing(options.label_smoothing, kName);
  if (options.from_logits)
    return make_element_loss(kName, BinaryCrossentropyOfLogits{options.label_smoothing});
  return make_element_loss(kName, BinaryCrossentropy{options.label_smoothing});
}

Loss binary_focal_crossentropy(const FocalOptions& options) {
  constexpr const char* kName = "binary_focal_crossentropy";
  require_usable(options, kName);
  return make_element_loss(kName, BinaryFocal{options});
}

Loss hinge() { return make_element_loss("hinge", Hinge{}); }
Loss squared_hinge() { return make_element_loss("squared_hinge", SquaredHinge{}); }

Loss categorical_crossentropy(const CrossentropyOptions& options) {
  constexpr const char* kName = "categorical_crossentropy";
  require_smoothing(options.label_smoothing, kName);
  if (options.from_logits)
    return make_row_loss(kName, CategoricalCrossentropyOfLogits{options.label_smoothing});
  return make_row_loss(kName, CategoricalCrossentropy{options.label_smoothing});
}

Loss categorical_focal_crossentropy(const FocalOptions& options) {
  constexpr const char* kName = "categorical_focal_crossentropy";
  require_usable(options, kName);
  return make_row_loss(kName, CategoricalFocal{options});
}

Loss kl_divergence() { return make_row_loss("kl_divergence", KlDivergence{}); }
Loss categorical_hinge() { return make_row_loss("categorical_hinge", CategoricalHinge{}); }

Loss sparse_categorical_crossentropy(const SparseCrossentropyOptions& options) {
  if (options.from_logits) return make_row_loss(kSparse, SparseCrossentropyOfLogits{options.ignore_class});
  return make_row_loss(kSparse, SparseCrossentropy{options.ignore_class});
}

}  // namespace cohort::losses
