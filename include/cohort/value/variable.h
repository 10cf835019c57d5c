// A Variable is a tensor that training changes. Under a strategy it is mirrored: one
// component per local replica, kept equal by the rules of its aggregation. A Variable
// is a handle; copies denote the same variable.
//
// Made inside `strategy.scope()` it belongs to that strategy, and all workers make the
// same variables in the same order: the chief's initial value goes to everybody.
// Outside a scope it is plain, with one component, which concurrent replicas may read only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/device/tensor.h>

namespace cohort {

/// What becomes of the different values that replicas assign to one variable.
enum class VariableAggregation {
  kNone,              ///< each replica writes its own component; keeping them equal is up to the caller
  kSum,               ///< the sum over all replicas is assigned to every component
  kMean,              ///< the mean over all replicas is assigned to every component
  kOnlyFirstReplica,  ///< the value of replica 0 is assigned to every component
};

[[nodiscard]] std::string_view to_string(VariableAggregation aggregation) noexcept;

struct VariableOptions {
  Shape shape = {};               ///< [] means that of `initial_value`, or a scalar
  DType dtype = DType::kFloat32;  ///< ignored when `initial_value` is given
  std::string name = "variable";
  std::optional<Tensor> initial_value = {};  ///< zeros when absent
  VariableAggregation aggregation = VariableAggregation::kNone;
  bool trainable = true;
};

class Variable {
 public:
  /// @throws InvalidArgument for a contradictory shape, or MEAN of an integer dtype.
  explicit Variable(VariableOptions options);

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const Shape& shape() const noexcept;
  [[nodiscard]] DType dtype() const noexcept;
  [[nodiscard]] bool trainable() const noexcept;
  [[nodiscard]] VariableAggregation aggregation() const noexcept;

  /// Inside a replica: its own component, without a copy. Elsewhere: a copy of the first component.
  /// @throws WrongContext when another strategy is active.
  [[nodiscard]] Tensor read() const;

  /// Inside a replica: the values of all replicas are aggregated first. Elsewhere: every local
  /// component gets `value`; all workers must pass the same.
  /// @throws InvalidArgument when dtype or shape differ; WrongContext when another strategy is active.
  void assign(const Tensor& value) const;
  void assign_add(const Tensor& value) const;
  void assign_sub(const Tensor& value) const;

  /// The same with a number, for variables of shape [].
  template <Element T>
  void assign(T value) const {
    assign(Tensor::scalar(value).cast(dtype()));
  }
  template <Element T>
  void assign_add(T value) const {
    assign_add(Tensor::scalar(value).cast(dtype()));
  }
  template <Element T>
  void assign_sub(T value) const {
    assign_sub(Tensor::scalar(value).cast(dtype()));
  }

  /// The storage of every local replica, by number; for optimizers and checkpoints.
  [[nodiscard]] std::span<const Tensor> components() const noexcept;

  /// The component of the calling replica, to be written by code that keeps replicas equal itself.
  /// @throws WrongContext unless a replica of the variable's strategy calls; a plain variable's only
  /// component belongs to whoever calls.
  [[nodiscard]] const Tensor& replica_component() const;

  /// Whether two handles denote one variable.
  friend bool operator==(const Variable& a, const Variable& b) { return a.state_ == b.state_; }

 private:
  struct State;
  using Update = void (*)(const Tensor& component, const Tensor& value);
  void apply(Update update, const char* what, const Tensor& value) const;
  void require_own_strategy(const char* what) const;
  void require_one_writer(const char* what) const;
  std::shared_ptr<State> state_;
};

/// What a variable needs of the strategy in whose scope it was made.
class VariableOwner {
 public:
  virtual ~VariableOwner() = default;

  [[nodiscard]] virtual const std::string& strategy_name() const = 0;

  /// How many components a variable has: one per local replica.
  [[nodiscard]] virtual int components() const = 0;

  /// One component per local replica, all with the chief's `initial_value`. Collective over workers.
  [[nodiscard]] virtual std::vector<Tensor> mirror(const Tensor& initial_value) = 0;

  /// Inside local replica `local_replica`: the aggregate of what all replicas pass. Collective.
  [[nodiscard]] virtual Tensor aggregate(VariableAggregation aggregation, const Tensor& value,
                                         int local_replica) = 0;

  /// Keeps the strategy's devices and communicators alive as long as its variables.
  [[nodiscard]] virtual std::shared_ptr<VariableOwner> share() = 0;
};

}  // namespace cohort
