// How a CSV file is written, and which of its columns are wanted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <cohort/device/dtype.h>

namespace cohort {

struct CsvOptions {
  /// For rows that are tensors; unset: float32. Other rows have C++ types of their own.
  std::optional<DType> dtype = {};
  char delimiter = ',';
  bool has_header = false;                ///< the first line of each file names the columns
  std::optional<char> comment = {};       ///< lines that start with it are skipped; RFC 4180 has none
  std::vector<std::string> columns = {};  ///< names of the wanted columns, in this order; empty: all
};

}  // namespace cohort
