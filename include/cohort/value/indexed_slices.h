// IndexedSlices is a sparse tensor: some rows of a dense one, and which rows they are. The
// gradient of an embedding has this form, for a step touches few of its rows. A row may be
// named more than once; its values then add up.
//
// A handle like Tensor: copies share storage. Reductions keep every row that the replicas
// contribute, in the order of the replicas; nothing is added up before `densify`.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include <cohort/device/tensor.h>

namespace cohort {

struct IndexedSlices {
  Tensor values = {};  ///< [rows, ...]: the rows that are there
  Tensor indices =
      {};  ///< [rows], int32 or int64: the place of each along the first axis of the dense tensor
  Shape dense_shape = {};  ///< of the dense tensor: [extent, ...]
};

/// @throws InvalidArgument when the three do not fit together, or an index is not a row of the
/// dense tensor, naming it.
void validate(const IndexedSlices& slices);

/// The dense tensor: zero where no row is given, the sum where several are; of 16-bit floats it is taken in
/// float32 and rounded once.
/// @throws InvalidArgument as `validate`, and for bool.
[[nodiscard]] Tensor densify(const IndexedSlices& slices);

/// The rows of all parts one after the other, duplicates and all.
/// @throws InvalidArgument for no parts, or for one of another dtype or dense shape, naming it.
[[nodiscard]] IndexedSlices concatenate(std::span<const IndexedSlices> parts);

/// For example `3 rows of float32[100, 8]`: what messages call slices.
[[nodiscard]] std::string describe(const IndexedSlices& slices);

/// For example `IndexedSlices(values=..., indices=..., dense_shape=[100, 8])`.
std::ostream& operator<<(std::ostream& stream, const IndexedSlices& slices);

}  // namespace cohort
