// The tensors of a model, as a CSV file lists them: a header `name,elements`, then one row per
// tensor, in the order of the forward pass.
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <vector>

namespace cohort::bench {

struct Model {
  std::string name;  ///< the file's, without folder and ending
  /// Elements of each gradient in the order in which the backward pass makes them ready: last tensor first.
  std::vector<std::size_t> gradients;

  [[nodiscard]] std::size_t elements() const;
};

/// @throws UsageError when the file cannot be read, or naming the line that is wrong.
[[nodiscard]] Model read_model(const std::string& path);

/// Reads the text of such a file; `path` is for messages and the name.
[[nodiscard]] Model parse_model(std::istream& text, const std::string& path);

}  // namespace cohort::bench
