#include "digits_data.h"

#include <array>
#include <random>
#include <vector>

#include <cohort/device/tensor_ops.h>
#include <cohort/input/files/csv.h>
#include <cohort/input/files/tf_record.h>

namespace digits {
namespace {

using cohort::DataLoss;
using cohort::Dataset;
using cohort::DType;
using cohort::Tensor;

constexpr std::uint64_t kSplitSeed = 20260101;
constexpr std::size_t kTestEvery = 5;  // 80 : 20
constexpr float kBrightest = 16;

Batch make_batch(const std::vector<Tensor>& rows) {
  const Tensor table = cohort::stack_tensors(rows);
  const std::int64_t count = table.shape()[0];
  Batch batch{Tensor::uninitialized({count, kPixels}, DType::kFloat32),
              Tensor::uninitialized({count}, DType::kInt32)};
  for (std::int64_t row = 0; row < count; ++row) {
    const auto values = table.row(row).span<float>();
    const auto pixels = batch.images.row(row).span<float>();
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = values[i] / kBrightest;
    batch.labels.span<std::int32_t>()[static_cast<std::size_t>(row)] =
        static_cast<std::int32_t>(values.back());
  }
  return batch;
}

/// The images of the file, float32[65]: the pixels, and the digit.
Dataset<Tensor> read_rows(const std::string& path) {
  if (!path.ends_with(".tfrecord")) return cohort::csv_dataset<Tensor>({path});
  return cohort::tf_record_dataset({path}).map(
      [](const Tensor& record) { return record.cast(DType::kFloat32); });
}

/// The rows of each digit.
std::array<std::vector<Tensor>, kClasses> by_label(const std::string& path) {
  std::array<std::vector<Tensor>, kClasses> groups;
  std::int64_t number = 0;
  for (const Tensor& row : read_rows(path)) {
    ++number;
    if (row.elements() != kPixels + 1) {
      throw DataLoss("{}: row {} has {} fields; digits have 64 pixels and a label", path, number,
                     row.elements());
    }
    const float label = row.span<float>().back();
    if (label < 0 || label >= static_cast<float>(kClasses) ||
        label != static_cast<float>(static_cast<int>(label))) {
      throw DataLoss("{}: row {} is labelled {}; labels are the digits 0 to 9", path, number, label);
    }
    groups[static_cast<std::size_t>(label)].push_back(row);
  }
  return groups;
}

}  // namespace

Digits load_digits(const std::string& path) {
  std::mt19937_64 random(kSplitSeed);
  std::vector<Tensor> train;
  std::vector<Tensor> test;
  for (std::vector<Tensor>& group : by_label(path)) {
    for (std::size_t i = group.size(); i > 1; --i) std::swap(group[i - 1], group[random() % i]);
    for (std::size_t i = 0; i < group.size(); ++i) (i % kTestEvery == 0 ? test : train).push_back(group[i]);
  }
  if (train.empty() || test.empty()) throw DataLoss("{}: too few images to train and to test with", path);
  return {make_batch(train), make_batch(test)};
}

}  // namespace digits
