// What the recorded checkpoint has: the program that made it and the test that reads it agree on it here.
#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort::testing {

inline constexpr std::int64_t kRecordedStep = 7;
inline constexpr const char* kRecordedText = "a text: \xc3\xa4\n";

/// Rows that are enough for each of two workers to write some.
inline Tensor recorded_table() {
  std::vector<float> numbers(std::size_t{60} * 4);
  std::iota(numbers.begin(), numbers.end(), -0.5F);
  return Tensor::from(numbers, {60, 4});
}

/// One tensor of each dtype, and the shapes that are not usual.
inline std::map<std::string, Tensor> recorded_tensors() {
  std::map<std::string, Tensor> tensors;
  for (const DType dtype : kAllDTypes) {
    const std::vector<double> numbers{0, 1, 2, 3, 100, 5};
    tensors.emplace("dtype/" + std::string(to_string(dtype)), Tensor::from(numbers, {2, 3}).cast(dtype));
  }
  tensors.emplace("scalar", Tensor::scalar(1.5));
  tensors.emplace("no rows", Tensor::zeros({0, 3}, DType::kInt64));
  return tensors;
}

}  // namespace cohort::testing
