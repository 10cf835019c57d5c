// The optimizers that a server has made from recipes, and what they do to its variables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/train/optimizers/optimizer_registry.h>

#include "server/store/store.h"

namespace cohort {

/// One step of an optimizer on tensors that a server keeps.
class OptimizerOnServer {
 public:
  /// @throws as `make_optimizer`.
  explicit OptimizerOnServer(const OptimizerRecipe& recipe) : optimizer_(make_optimizer(recipe)) {}

  [[nodiscard]] std::size_t slots() const noexcept { return optimizer_->slot_names_.size(); }
  [[nodiscard]] double slot_beginning(std::size_t slot) const { return optimizer_->slot_beginning(slot); }
  [[nodiscard]] bool has_beginnings() const {
    for (std::size_t i = 0; i < slots(); ++i)
      if (slot_beginning(i) != 0) return true;
    return false;
  }
  void update(const Tensor& variable, std::span<const Tensor> slots, const Tensor& gradient,
              std::int64_t step) const {
    optimizer_->update(variable, slots, gradient,
                       optimizer_->arguments_of(step, optimizer_->learning_rate()));
  }

 private:
  std::unique_ptr<Optimizer> optimizer_;
};

namespace server {

// Rows of a tensor to and from one that has them alone. Both are on a CPU.

/// The given rows, in that order. The caller has seen to it that there are such rows.
[[nodiscard]] Tensor gather_rows(const Tensor& from, std::span<const std::int64_t> rows);

/// Row i of `from` becomes row `rows[i]` of `to`.
void scatter_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to);

/// How many steps optimizers have made on the variable. This is a variable of the store, beside it: it
/// changes in the same commits, and outlives the server's process.
[[nodiscard]] std::int64_t steps_of(const Store& store, VariableIndex variable);

/// Part of the store's open commit.
void set_steps(Store& store, VariableIndex variable, std::int64_t steps);

class OptimizersOnServer {
 public:
  /// Part of the store's open commit.
  void step(const OptimizerRecipe& recipe, Store& store, VariableIndex variable, const Tensor& gradient);
  void step_rows(const OptimizerRecipe& recipe, Store& store, VariableIndex variable, const Tensor& gradient,
                 std::span<const std::int64_t> rows);

 private:
  [[nodiscard]] const OptimizerOnServer& made_from(const OptimizerRecipe& recipe);

  std::map<std::pair<std::string, std::vector<std::byte>>, OptimizerOnServer> made_;
};

}  // namespace server
}  // namespace cohort
