#include <cohort/train/metrics/accuracies.h>

#include <algorithm>

#include <cohort/base/error.h>

#include "train/metrics/mean_of_rows.h"

namespace cohort::metrics {
namespace {

struct Equal {
  static constexpr bool kOfClasses = false;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    return sum_of<T>(columns, [&](std::size_t i) -> T { return labels[i] == predictions[i] ? 1 : 0; }) /
           static_cast<double>(columns);
  }
};

struct OnTheSideOfTheLabel {
  static constexpr bool kOfClasses = false;
  double threshold;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    const T limit = static_cast<T>(threshold);
    return sum_of<T>(
               columns,
               [&](std::size_t i) -> T { return labels[i] == (predictions[i] > limit ? 1 : 0) ? 1 : 0; }) /
           static_cast<double>(columns);
  }
};

template <class T>
std::size_t place_of_largest(const T* row, std::size_t columns) {
  return static_cast<std::size_t>(std::max_element(row, row + columns) - row);
}

/// How many predictions are larger than that of `label`; no number is, of a NaN.
template <class T>
bool is_among_largest(const T* predictions, std::size_t columns, std::size_t label, int k) {
  const T own = predictions[label];
  if (own != own) return false;
  return std::count_if(predictions, predictions + columns, [&](T each) { return each > own; }) < k;
}

struct LargestIsLabel {
  static constexpr bool kOfClasses = true;
  template <class T>
  double value(const std::int64_t* label, const T* predictions, std::size_t columns) const {
    return place_of_largest(predictions, columns) == class_of(*label, columns, "sparse_categorical_accuracy");
  }
};

struct LargestIsLargestLabel {
  static constexpr bool kOfClasses = false;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    return place_of_largest(predictions, columns) == place_of_largest(labels, columns);
  }
};

struct LabelIsAmongLargest {
  static constexpr bool kOfClasses = true;
  int k;
  template <class T>
  double value(const std::int64_t* label, const T* predictions, std::size_t columns) const {
    return is_among_largest(predictions, columns,
                            class_of(*label, columns, "sparse_top_k_categorical_accuracy"), k);
  }
};

struct LargestLabelIsAmongLargest {
  static constexpr bool kOfClasses = false;
  int k;
  template <class T>
  double value(const T* labels, const T* predictions, std::size_t columns) const {
    return is_among_largest(predictions, columns, place_of_largest(labels, columns), k);
  }
};

int require_k(int k, const std::string& name) {
  if (k >= 1) return k;
  throw InvalidArgument("{}: k is {}; give at least 1", name, k);
}

}  // namespace

Metric accuracy(const std::string& name) { return make_mean_of_rows(name, Equal{}); }
Metric binary_accuracy(double threshold, const std::string& name) {
  return make_mean_of_rows(name, OnTheSideOfTheLabel{threshold});
}
Metric categorical_accuracy(const std::string& name) {
  return make_mean_of_rows(name, LargestIsLargestLabel{});
}
Metric sparse_categorical_accuracy(const std::string& name) {
  return make_mean_of_rows(name, LargestIsLabel{});
}
Metric top_k_categorical_accuracy(int k, const std::string& name) {
  return make_mean_of_rows(name, LargestLabelIsAmongLargest{require_k(k, name)});
}
Metric sparse_top_k_categorical_accuracy(int k, const std::string& name) {
  return make_mean_of_rows(name, LabelIsAmongLargest{require_k(k, name)});
}

}  // namespace cohort::metrics
