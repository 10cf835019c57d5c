// Reads the values of a checkpoint, and checks what it reads.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <cohort/device/tensor.h>

#include "file.h"
#include "manifest.h"
#include "safetensors.h"

namespace cohort::checkpoint {

/// One thread at a time. Files stay open.
class PieceReader {
 public:
  /// Of the checkpoint in `folder`.
  explicit PieceReader(std::string folder) : folder_(std::move(folder)) {}

  /// The whole value, in host memory. @throws DataLoss naming the value and the file when it is damaged;
  /// Unavailable when it cannot be read.
  [[nodiscard]] Tensor read(const std::string& name, const ValueEntry& value);

  /// Opens the files of a value: it can be read later, also when they have been removed. @throws as read().
  void open(const std::string& name, const ValueEntry& value);
  /// The file of a piece, and its place there: a manifest is not believed before memory is allocated.
  /// @throws as read().
  std::pair<const InputFile*, TensorPlace> locate(const std::string& name, const ValueEntry& value,
                                                  const Piece& piece);

  /// Only checks a piece. @throws as read().
  void check(const std::string& name, const ValueEntry& value, const Piece& piece);

 private:
  struct OpenFile {
    explicit OpenFile(std::string path) : file(std::move(path)), header(read_header(file)) {}
    InputFile file;
    SafetensorsHeader header;
  };

  std::string folder_;
  std::map<std::string, std::unique_ptr<OpenFile>> files_;
};

}  // namespace cohort::checkpoint
