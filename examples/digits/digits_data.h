// The images of handwritten digits, split into a training and a test set.
#pragma once

#include <string>

#include <cohort/device/tensor.h>
#include <cohort/value/structure.h>

namespace digits {

inline constexpr std::int64_t kPixels = 64;
inline constexpr std::int64_t kClasses = 10;

struct Batch {
  cohort::Tensor images;  ///< float32[rows, 64], from 0 to 1
  cohort::Tensor labels;  ///< int32[rows], from 0 to 9
};
COHORT_FIELDS(Batch, images, labels)

struct Digits {
  Batch train;
  Batch test;
};

/// Reads the file, TFRecord by its extension and otherwise CSV, and puts every fifth image of each digit, in
/// an order drawn from a fixed seed, into the test set. @throws cohort::Error for a file of another form.
[[nodiscard]] Digits load_digits(const std::string& path);

}  // namespace digits
