// NumPy's format of several arrays in one file: a zip archive, not compressed, of NAME.npy for each.
#pragma once

#include <string>

#include "checkpoint/format/manifest.h"

namespace cohort::tool {

/// Writes the values of the checkpoint at `path` to `target`, which is replaced when all are written. Memory
/// is taken for one of them at a time. NumPy has no bfloat16: such values become items of 2 bytes, as JAX
/// saves them.
/// @throws Unavailable, and as PieceReader::read.
void write_npz(const std::string& target, const std::string& path, const checkpoint::Manifest& manifest);

}  // namespace cohort::tool
