// Labels, predictions and weights as losses and metrics see them: rows of numbers of the type in which they
// are computed. Numbers of that type are read where they are, others converted to memory that each thread
// keeps for the next batch.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort {

/// Which argument a conversion is of: each has its own memory.
enum class Part : std::uint8_t { kLabels, kPredictions, kWeights, kResult };

/// `count` numbers of this thread's, valid until the next call for the same part and type.
template <class T>
[[nodiscard]] std::span<T> kept_memory(Part part, std::size_t count) {
  thread_local std::array<std::vector<T>, 4> memory;
  std::vector<T>& numbers = memory[static_cast<std::size_t>(part)];
  if (numbers.size() < count) numbers.resize(count);
  return std::span(numbers).first(count);
}

/// Its elements as `T`.
template <class T>
[[nodiscard]] std::span<const T> elements_as(const Tensor& tensor, Part part) {
  if (!is_cpu(tensor)) {
    const Tensor host = tensor.on_host();
    const std::span<const T> read = elements_as<T>(host, part);
    const std::span<T> kept = kept_memory<T>(part, read.size());
    if (read.data() != kept.data()) std::ranges::copy(read, kept.begin());
    return kept;
  }
  if (tensor.dtype() == kDTypeOf<T>) return tensor.span<T>();
  const std::span<T> converted = kept_memory<T>(part, tensor.elements());
  visit_dtype(tensor.dtype(), [&]<class From>(std::type_identity<From>) {
    std::ranges::transform(tensor.span<From>(), converted.begin(), convert_element<T, From>);
  });
  return converted;
}

/// Calls `function(std::type_identity<T>{})` with double for float64 and float for any other dtype.
template <class Function>
decltype(auto) with_precision(DType dtype, Function&& function) {
  if (dtype == DType::kFloat64) return function(std::type_identity<double>{});
  return function(std::type_identity<float>{});
}

/// The same for numbers that are only added up: integers as double.
template <class Function>
decltype(auto) with_number(DType dtype, Function&& function) {
  const bool is_narrow = is_half(dtype) || dtype == DType::kFloat32;
  if (is_narrow) return function(std::type_identity<float>{});
  return function(std::type_identity<double>{});
}

/// How many consecutive values share a weight.
/// @throws InvalidArgument unless there is one for each value, for each row of values, or for all.
[[nodiscard]] std::size_t values_per_weight(const Tensor& values, const Tensor& weights,
                                            std::string_view what);

/// How the elements of predictions are divided among examples.
struct RowLayout {
  std::size_t rows = 0;
  std::size_t columns = 1;
};

/// Those of [..., columns]; [rows] has a column. @throws InvalidArgument for a scalar; `what` names the
/// caller.
[[nodiscard]] RowLayout row_layout(const Tensor& predictions, std::string_view what);

/// @throws InvalidArgument for predictions that are not floating.
void require_floating(const Tensor& predictions, std::string_view what);

/// @throws InvalidArgument unless both have one shape, but for a last extent of 1.
void require_same_rows(const Tensor& labels, const Tensor& predictions, std::string_view what);

/// @throws InvalidArgument unless there is a label for each row of the predictions.
void require_row_labels(const Tensor& labels, const Tensor& predictions, std::string_view what);

[[noreturn]] void throw_no_class(std::int64_t label, std::size_t classes, std::string_view what);

/// @throws InvalidArgument for a label that is not a class from 0.
[[nodiscard]] inline std::size_t class_of(std::int64_t label, std::size_t classes, std::string_view what) {
  if (label < 0 || static_cast<std::size_t>(label) >= classes) throw_no_class(label, classes, what);
  return static_cast<std::size_t>(label);
}

/// Without overflow.
template <class T>
T sigmoid(T logit) {
  const T small = std::exp(-std::abs(logit));
  return (logit < 0 ? small : 1) / (1 + small);
}

/// Of these numbers one for each row, or one for all.
template <class T>
class RowWeights {
 public:
  /// All 1 where `weights` is null. @throws InvalidArgument for another number of weights.
  RowWeights(const Tensor* weights, std::size_t rows, std::string_view what)
      : weights_(weights == nullptr ? std::span<const T>() : elements_as<T>(*weights, Part::kWeights)) {
    if (weights_.size() > 1 || (weights != nullptr && weights_.empty() && rows != 0))
      require_count(*weights, rows, what);
  }
  [[nodiscard]] bool are_ones() const noexcept { return weights_.empty(); }
  [[nodiscard]] T operator[](std::size_t row) const noexcept {
    if (weights_.empty()) return 1;
    return weights_.size() == 1 ? weights_[0] : weights_[row];
  }

 private:
  static void require_count(const Tensor& weights, std::size_t rows, std::string_view what);
  std::span<const T> weights_;
};

/// The sum of `term(i)` for i below `count`, in 8 partial sums that the processor adds side by side.
template <class T, class Term>
[[nodiscard]] T sum_of(std::size_t count, Term term) {
  constexpr std::size_t kSums = 8;
  std::array<T, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane) sums[lane] += term(i + lane);
  for (std::size_t lane = 0; i < count; ++i, ++lane) sums[lane] += term(i);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace cohort
