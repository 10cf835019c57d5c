// Numbers from comma-separated text: every field of every row, as one matrix.
#pragma once

#include <string>

#include <cohort/device/tensor.h>

namespace cohort {

struct CsvOptions {
  DType dtype = DType::kFloat32;
  char delimiter = ',';
  bool has_header = false;  ///< the first line names the columns and is skipped
};

/// The file's numbers, shape [rows, columns]. Empty lines and lines that start with `#` are skipped.
/// @throws Unavailable when the file cannot be opened; DataLoss naming file, line and field for a
/// field that is not a number of `dtype`, or a row with another number of fields than the first.
[[nodiscard]] Tensor read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace cohort
