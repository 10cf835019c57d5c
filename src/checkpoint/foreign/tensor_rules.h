// How tensors of other programs become values here, and the other way round: they get other names, and
// matrices are transposed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/checkpoint/safetensors.h>
#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/device/tensor.h>

namespace cohort::checkpoint {

/// What each `*` of a pattern stands for in a name, which it is to match as a whole: the shortest texts, from
/// the left. Nothing if it does not match.
[[nodiscard]] std::optional<std::vector<std::string_view>> match(std::string_view pattern,
                                                                 std::string_view name);

/// The rules of SafetensorsOptions. Notes which of them are used.
class TensorRules {
 public:
  /// @throws InvalidArgument for empty names, and a rule of which the two names have another number of `*`.
  TensorRules(std::span<const std::pair<std::string, std::string>> rename,
              std::span<const std::string> transpose);

  /// The new name.
  [[nodiscard]] std::string rename(const std::string& name);

  /// Whether the tensor that has these names is transposed. @throws InvalidArgument if it should be, by its
  /// full name, and is no matrix.
  [[nodiscard]] bool is_transposed(const std::string& old_name, const std::string& new_name,
                                   const Shape& shape);

  /// @throws InvalidArgument naming the rules that no tensor of `where` needed: they were meant to match.
  void require_used(std::string_view where) const;

 private:
  std::vector<std::pair<std::string, std::string>> rename_;
  std::vector<std::string> transpose_;
  std::vector<bool> is_rename_used_;
  std::vector<bool> is_transpose_used_;
};

/// The shape of a matrix's transpose.
[[nodiscard]] Shape transposed(const Shape& shape);

/// @throws InvalidArgument for a tensor of which bytes are read that are no elements of their own.
void require_transposable(const std::string& name, const SafetensorsTensor& tensor);

/// The elements in another dtype, and a matrix transposed, if that is asked; otherwise the tensor itself. In
/// host memory.
[[nodiscard]] Tensor converted(const Tensor& tensor, DType dtype, bool is_transposed);

/// The first names and how many more there are: `a, b and 3 others`.
[[nodiscard]] std::string list_names(std::span<const std::string> names);

}  // namespace cohort::checkpoint
