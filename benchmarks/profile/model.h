// The tensors of a model, as a CSV file lists them: a header `name,elements`, then one row per
// tensor, in the order of the forward pass. And the gradients of these tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "value_table.h"

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

/// The gradients of a model in one member's memory, written anew for each step and compared with the exact
/// sum after it.
class Gradients {
 public:
  /// `pieces` are this member's gradients, in readiness order; their memory outlives this.
  Gradients(std::vector<std::span<std::byte>> pieces, const ValueSource& values, int member)
      : pieces_(std::move(pieces)), input_(values.input(member)), sum_(values.reduced()) {}

  /// Other values with each `step`.
  void write(std::size_t step) const {
    for (std::size_t i = 0; i < pieces_.size(); ++i) input_.write(pieces_[i], start(step, i));
  }

  /// How many elements of `results`, one for each gradient, are not the sum of all members' values.
  [[nodiscard]] std::uint64_t count_wrong(std::span<const std::span<std::byte>> results,
                                          std::size_t step) const {
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < results.size(); ++i) wrong += sum_.count_wrong(results[i], start(step, i));
    return wrong;
  }

  [[nodiscard]] const std::vector<std::span<std::byte>>& pieces() const { return pieces_; }

 private:
  /// Each tensor has values of its own, so that tensors that were mistaken for each other show.
  static std::size_t start(std::size_t step, std::size_t tensor) { return 389 * step + 7 * tensor; }

  std::vector<std::span<std::byte>> pieces_;
  ValueTable input_;
  ValueTable sum_;
};

}  // namespace cohort::bench
