// Weights that other programs have saved as safetensors files, such as those of PyTorch and of Hugging Face.
//
//     load_safetensors("model.safetensors", {{kernel, bias}},
//                      {.rename = {{"fc.weight", "dense/kernel"}, {"fc.bias", "dense/bias"}},
//                       .transpose = {"dense/kernel"},        // PyTorch's Linear has rows of outputs
//                       .convert = true});                    // bfloat16 into float32
//
// A path is that of a file, of an index of several files (`model.safetensors.index.json`), or of a folder
// that has `model.safetensors` or `model.safetensors.index.json`. Files are mapped into memory, and copied
// once, into the variables. Nothing that a file says is believed unchecked.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/device/tensor.h>
#include <cohort/server/sharded_variable.h>
#include <cohort/strategy/strategy.h>
#include <cohort/value/variable.h>

namespace cohort {

/// A tensor of a file, and what read() makes of it.
///
/// The format has elements that tensors here do not: floats of 8, 6 and 4 bits (F8_E4M3, F8_E5M2,
/// F8_E4M3FNUZ, F8_E5M2FNUZ, F8_E8M0, F6_E2M3, F6_E3M2, F4) are read as their bytes, uint8: of F8 in the same
/// shape, of the others with a last axis that counts bytes. C64 is read as float32 with another axis, of 2.
struct SafetensorsTensor {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::string stored_as = {};  ///< the format's name for its elements, as `BF16`
  bool is_foreign = false;     ///< it has elements that tensors here do not
  std::string file = {};       ///< its path
};

/// The tensors of safetensors files. One thread at a time.
class SafetensorsReader {
 public:
  /// Reads the headers. Of an index, the tensors that it names.
  /// @throws Unavailable when a file is missing or cannot be read; DataLoss, naming file and tensor, for one
  /// that is damaged or none, and for an index that names tensors which its files do not have;
  /// InvalidArgument for a tensor that is in two files, naming both, and for a folder with neither a file nor
  /// an index.
  explicit SafetensorsReader(const std::string& path);
  explicit SafetensorsReader(std::span<const std::string> paths);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&& other) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&& other) noexcept;

  /// By name.
  [[nodiscard]] const std::map<std::string, SafetensorsTensor>& tensors() const& noexcept;
  [[nodiscard]] std::map<std::string, SafetensorsTensor> tensors() &&;

  /// The tensor in the file's memory, which lives as long as it; a copy only where elements are not aligned
  /// in the file. What is written to it changes no file. The file must not be shortened meanwhile.
  /// @throws InvalidArgument when there is none of this name; DataLoss when the file has become shorter or
  /// cannot be read, and for bools other than 0 and 1.
  [[nodiscard]] Tensor read(const std::string& name);

 private:
  class Files;
  std::unique_ptr<Files> files_;
};

struct SafetensorsOptions {
  /// What tensors are called in the files, and here: `{"fc.weight", "dense/kernel"}`. Each `*` stands for any
  /// characters, also dots and slashes, and is put in the place of the same `*` of the other name:
  /// `{"layers.*.fc.weight", "layer_*/kernel"}`. The first rule that matches counts; others keep their names.
  std::vector<std::pair<std::string, std::string>> rename = {};
  /// Matrices of which the files have the transposes, by their name there or here; with `*`, all that match
  /// and have two axes.
  std::vector<std::string> transpose = {};
  /// Floating tensors may have another floating dtype than their variables, to which they are rounded; what a
  /// float16 cannot hold becomes infinite.
  bool convert = false;
  /// Variables without a tensor keep their values, and tensors without a variable are passed over.
  bool allow_missing = false;
  bool allow_unexpected = false;
  /// How long workers wait for the slowest of them to read its files; 0: for ever.
  double timeout_seconds = 1800;
};

struct LoadedSafetensors {
  std::vector<std::string> missing = {};     ///< variables without a tensor
  std::vector<std::string> unexpected = {};  ///< tensors without a variable, by their names in the files
};

/// Gives variables the tensors of their names. All workers of `strategy` call it, in cross-replica context,
/// and each reads the files at a path of its own machine; what they read is compared, so that replicas cannot
/// come to differ.
/// @throws as SafetensorsReader; InvalidArgument for tensors that are missing or unexpected, for dtypes and
/// shapes that do not fit, for rules that match nothing, for two variables or tensors of one name, and where
/// workers read different files. Then nothing is changed. DataLoss when a file fails while it is read: with
/// one worker, some variables may have changed.
LoadedSafetensors load_safetensors(const std::string& path, std::span<const Variable> variables,
                                   const SafetensorsOptions& options = {},
                                   std::span<const ShardedVariable> sharded = {},
                                   const Strategy& strategy = get_strategy());
LoadedSafetensors load_safetensors(std::span<const std::string> paths, std::span<const Variable> variables,
                                   const SafetensorsOptions& options = {},
                                   std::span<const ShardedVariable> sharded = {},
                                   const Strategy& strategy = get_strategy());

}  // namespace cohort
