// How the workers that read a distributed dataset agree on its end: a worker whose data has ended goes on
// with empty batches until the others' have ended, too. With several workers it costs one small all-gather at
// the beginning, which finds out how many steps all are certain to have, and an all-reduce of flags for each
// later step; where all read the same data only a barrier at the end, if nobody knew how many steps there
// are. The thread that drives the strategy makes the calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <cohort/device/tensor_spec.h>
#include <cohort/input/auto_shard.h>
#include <cohort/input/cardinality.h>
#include <cohort/strategy/strategy_extended.h>
#include <cohort/value/structure.h>

namespace cohort::detail {

/// The form of a replica's batches (structure, dtypes and shapes but for the rows), from which empty ones are
/// made.
template <class Element>
class PartForm {
 public:
  explicit PartForm(const Element& like) : like_(like) {
    for_each_leaf([&](const Tensor& tensor) { specs_.push_back({tensor.shape(), tensor.dtype()}); }, like);
    // Only its form is kept, not its elements.
    if (can_be_empty()) like_ = without_rows(Device());
  }

  /// From another worker. @throws InvalidArgument when `specs` are not enough to make an element.
  explicit PartForm(std::span<const TensorSpec> specs) : like_(element_of(specs)) {
    specs_.assign(specs.begin(), specs.end());
  }

  [[nodiscard]] std::span<const TensorSpec> specs() const { return specs_; }

  [[nodiscard]] bool can_be_empty() const {
    return std::ranges::all_of(specs_, [](const TensorSpec& spec) { return spec.shape.rank() > 0; });
  }

  [[nodiscard]] Element without_rows(Device device) const {
    return map_structure(
        [&](const Tensor& tensor) {
          return Tensor::uninitialized(tensor.shape().with(0, 0), tensor.dtype(), device);
        },
        like_);
  }

 private:
  static Element element_of(std::span<const TensorSpec> specs) {
    static_assert(std::is_default_constructible_v<Element>,
                  "elements of distributed datasets are default-constructible: "
                  "a worker without data makes empty ones");
    Element element{};
    std::size_t leaves = 0;
    for_each_leaf(
        [&](Tensor& tensor) {
          if (leaves < specs.size()) tensor = Tensor::zeros(specs[leaves].shape, specs[leaves].dtype);
          ++leaves;
        },
        element);
    if (leaves == specs.size()) return element;
    throw InvalidArgument(
        "this worker has no data at all, and the others' elements of {} tensors "
        "do not follow from the type of the elements; give every worker at least one element",
        specs.size());
  }

  Element like_;
  std::vector<TensorSpec> specs_;
};

/// What one worker knows about its next step.
struct StepOffer {
  bool has_data = false;         ///< for at least one of its replicas
  bool needs_form = false;       ///< it must make empty batches, and has not seen a batch to model them on
  bool cannot_be_empty = false;  ///< a replica lacks data, and elements without a batch axis cannot be empty
};

/// What all workers do about it.
struct StepDecision {
  bool goes_on = false;
  std::optional<int> form_from = {};  ///< a worker that has the form that others need
};

/// What one worker knows of its pass without reading.
struct PassPlan {
  Cardinality steps;                           ///< that it is certain to have
  bool shared = false;                         ///< every worker reads everything: all have the same steps
  std::optional<AutoShardPolicy> policy = {};  ///< nothing where a function has made the dataset
  std::optional<std::int64_t> batch_elements = {};  ///< of a global batch, where it is split
};

class StepAgreement {
 public:
  /// Collective over the workers. @throws InvalidArgument on all workers, naming those that differ, for
  /// different policies, and where the data is shared, for different batches and numbers of steps.
  StepAgreement(StrategyExtended& extended, const PassPlan& own);

  /// Whether all workers are known to have step number `step`.
  [[nodiscard]] bool is_known(std::int64_t step) const noexcept { return step < known_steps_; }

  /// Whether all workers end at the same step.
  [[nodiscard]] bool ends_together() const noexcept { return ends_together_; }

  /// For a worker whose data end before step number `step`, which all are known to have. @throws
  /// InvalidArgument.
  [[noreturn]] void refuse_early_end(std::int64_t step) const;

  /// To be called where this worker's data ends without a decision of all, after so many steps. Where nobody
  /// knew how many there are, or all had endless data, the workers compare them. Collective over the workers
  /// then.
  /// @throws InvalidArgument on all workers when one has more.
  void end(std::int64_t steps);

  /// Collective over the workers.
  [[nodiscard]] StepDecision decide(const StepOffer& own);

  /// Returns the specs of worker `from`, where `own` has them, on every worker. Collective over the workers.
  [[nodiscard]] std::vector<TensorSpec> share_form(std::span<const TensorSpec> own, int from);

 private:
  StrategyExtended& extended_;
  std::int64_t known_steps_ = 0;
  bool ends_together_ = false;
  bool compares_ends_ = false;
  Tensor flags_;
};

}  // namespace cohort::detail
