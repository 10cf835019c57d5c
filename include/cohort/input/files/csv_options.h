// How a CSV file is written, and what of it is wanted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <cohort/device/dtype.h>

namespace cohort {

struct CsvOptions {
  /// Of rows that are tensors; unset: float32. The C++ types of other rows say what theirs is.
  std::optional<DType> dtype;
  char delimiter = ',';
  bool has_header = false;             ///< the first line of each file names the columns
  std::optional<char> comment = '#';   ///< lines that start with it are passed over; nothing: none are
  std::vector<std::string> columns{};  ///< the names of those that are wanted, in this order; none: all
};

}  // namespace cohort
