// A SummaryValue is what one call of a SummaryWriter records: a value of a tag at a step.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort {

/// Which part of TensorBoard shows the values of a tag, and how.
struct SummaryMetadata {
  std::string plugin = {};       ///< "scalars", "histograms", "text", ...; empty: none
  std::string content = {};      ///< bytes that the plugin understands
  std::string description = {};  ///< shown beside the tag, as Markdown
};

struct SummaryValue {
  std::string tag = {};
  std::int64_t step = 0;
  double wall_time = 0;  ///< seconds since 1970
  SummaryMetadata metadata = {};

  /// A scalar, a tensor on the CPU, or texts: [count] of them, or a single one if `is_single`.
  std::variant<double, Tensor, std::vector<std::string>> value = 0.0;
  bool is_single = false;

  [[nodiscard]] const double* scalar() const { return std::get_if<double>(&value); }
  [[nodiscard]] const Tensor* tensor() const { return std::get_if<Tensor>(&value); }
  [[nodiscard]] const std::vector<std::string>* texts() const {
    return std::get_if<std::vector<std::string>>(&value);
  }
};

}  // namespace cohort
