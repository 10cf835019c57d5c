// A value of a checkpoint as other programs are to have it, and what writes such values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/device/tensor.h>

#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"

namespace cohort::tool {

struct ExportedValue {
  std::string name = {};   ///< which it is to have
  std::string value = {};  ///< its name in the checkpoint
  const checkpoint::ValueEntry* entry = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape = {};
  bool is_transposed = false;

  [[nodiscard]] std::uint64_t bytes() const { return shape.elements() * size_of(dtype); }

  /// @throws as PieceReader::read.
  [[nodiscard]] Tensor read(checkpoint::PieceReader& reader) const;
};

struct WrittenFiles {
  std::string path = {};  ///< which a reader is given: the file, or the index of several
  std::size_t count = 1;  ///< of files that have values
};

/// Writes values of the checkpoint at `path` to `target`, a .safetensors, as PyTorch and transformers do;
/// what is larger than `shard_bytes`, to several files beside it and an index. These replace what was there,
/// also an export of the other form, when all are complete. Memory is taken for one value at a time.
/// @throws InvalidArgument for two values of one name; Unavailable, and as PieceReader::read.
WrittenFiles write_safetensors(const std::string& target, const std::string& path, std::int64_t step,
                               std::span<const ExportedValue> values,
                               std::optional<std::uint64_t> shard_bytes);

}  // namespace cohort::tool
