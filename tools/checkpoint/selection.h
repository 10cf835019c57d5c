// Which tensors export and import take, and what becomes of them: the options that both have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

#include "checkpoint/foreign/tensor_rules.h"
#include "command.h"

namespace cohort::tool {

class TensorSelection {
 public:
  /// @throws WrongUse; DataLoss for a map that is no JSON.
  explicit TensorSelection(const Arguments& arguments);

  /// Whether `--only` and `--skip` leave a tensor in.
  [[nodiscard]] bool takes(const std::string& name);

  struct Outcome {
    std::string name = {};
    DType dtype = DType::kFloat32;
    Shape shape = {};
    bool is_transposed = false;
  };

  /// What becomes of a tensor that is taken. @throws InvalidArgument for a name that another one has already.
  [[nodiscard]] Outcome apply(const std::string& name, DType dtype, const Shape& shape);

  /// @throws InvalidArgument for options that nothing at `where` needed.
  void require_used(const std::string& where) const;

 private:
  struct Pattern {
    std::string text = {};
    bool is_used = false;
  };
  static std::vector<Pattern> patterns(const std::vector<std::string>& texts);
  static bool matches_any(std::vector<Pattern>& patterns, const std::string& name);

  checkpoint::TensorRules rules_;
  std::vector<Pattern> only_;
  std::vector<Pattern> skip_;
  std::optional<DType> dtype_;
  std::map<std::string, std::string> old_names_ = {};  ///< by the new ones
};

/// The value of an option as bytes: `5GB` are 5e9, `500MiB` 500 * 2^20. Nothing if it is not given.
/// @throws WrongUse.
[[nodiscard]] std::optional<std::uint64_t> bytes_given(const Arguments& arguments, const std::string& option);

}  // namespace cohort::tool
