// The rows of an array in a file, one after the other: the common part of fixed-length records, IDX and .npy
// files.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include <cohort/input/element_iterator.h>

#include "mapped_file.h"

namespace cohort::detail {

struct ArrayLayout {
  std::uint64_t offset = 0;  ///< of the first row in the file
  std::int64_t rows = 0;
  Shape row;  ///< the shape of each
  DType dtype = DType::kUInt8;
  std::endian byte_order = std::endian::native;
};

/// The rows, as views of the file where its bytes are an array of this machine, otherwise converted.
/// The array lies within the file. @throws DataLoss, when iterated, for a bool that is neither 0 nor 1.
[[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> iterate_rows(std::unique_ptr<MappedFile> file,
                                                                    const ArrayLayout& layout);

}  // namespace cohort::detail
