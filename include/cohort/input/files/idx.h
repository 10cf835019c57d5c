// IDX, the format of MNIST: an array of any number of axes, big-endian.
#pragma once

#include <string>
#include <vector>

#include <cohort/input/dataset.h>

namespace cohort {

/// One element per row of the array in each file: of uint8[60000, 28, 28], tensors uint8[28, 28].
/// Bytes are views of the mapped file; longer numbers are copied into this machine's order.
/// @throws InvalidArgument without a file. When iterated: Unavailable for a file that cannot be opened;
/// DataLoss for one that is not an IDX file, or whose header does not match its size.
[[nodiscard]] Dataset<Tensor> idx_dataset(std::vector<std::string> files);

}  // namespace cohort
