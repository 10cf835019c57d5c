// Records of a fixed number of bytes, one after the other, optionally between a header and a footer: the
// CIFAR files, for example, and dumps of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <cohort/input/dataset.h>

namespace cohort {

struct FixedLengthRecordOptions {
  std::int64_t record_bytes = 0;  ///< of each record, at least 1
  std::int64_t header_bytes = 0;  ///< skipped at the start of each file
  std::int64_t footer_bytes = 0;  ///< and at its end
};

/// One element per record, uint8[record_bytes]: a view of the mapped file, without a copy.
/// @throws InvalidArgument for options out of range. When iterated: Unavailable for a file that
/// cannot be opened; DataLoss for one that is not a whole number of records.
[[nodiscard]] Dataset<Tensor> fixed_length_record_dataset(std::vector<std::string> files,
                                                          const FixedLengthRecordOptions& options);

}  // namespace cohort
