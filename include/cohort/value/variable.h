// A Variable is a tensor that training changes. A Variable is a handle; copies denote the
// same variable.
//
// Made inside `strategy.scope()` it belongs to that strategy, which decides what it is: mirrored, with a
// component per local replica that every write keeps equal (ON_WRITE); per replica, with components that only
// a read brings together (ON_READ); or one copy, to which the replicas' updates are aggregated (on a
// parameter device). All workers make the same variables in the same order: all get the chief's initial
// value. Inside `run`, all replicas make it together and get the same variable.
//
// Outside a scope it is plain, with one component, which concurrent replicas may only read.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/value/detail/variable_state.h>
#include <cohort/value/indexed_slices.h>

namespace cohort {

class Variable {
 public:
  /// Asks the thread's variable creators, then the current strategy (see variable_creator_scope.h).
  /// @throws InvalidArgument for a contradictory shape, for NONE synchronization or MEAN of an integer
  /// dtype where a strategy mirrors its variables, for a foreign variable to colocate with, and inside
  /// replicas that make different variables, naming them.
  explicit Variable(VariableOptions options);
  template <std::same_as<Tensor> Value>
  explicit Variable(const Value& value) = delete;  // write Variable({.initial_value = value})

  /// Another handle of a variable; a template so that `Variable({})` means options. Internal.
  template <std::derived_from<VariableState> State>
  explicit Variable(std::shared_ptr<State> state) : state_(std::move(state)) {}

  [[nodiscard]] const std::string& name() const& noexcept { return state_->options().name; }
  [[nodiscard]] std::string name() && { return state_->options().name; }
  [[nodiscard]] const Shape& shape() const& noexcept { return state_->shape(); }
  [[nodiscard]] Shape shape() && noexcept { return state_->shape(); }
  [[nodiscard]] DType dtype() const noexcept { return state_->dtype(); }
  [[nodiscard]] bool trainable() const noexcept { return *state_->options().trainable; }
  [[nodiscard]] VariableSynchronization synchronization() const noexcept {
    return state_->options().synchronization;
  }
  [[nodiscard]] VariableAggregation aggregation() const noexcept { return state_->options().aggregation; }

  /// Inside a replica or an update: its own component, without a copy. Elsewhere a copy: of the
  /// component on the current device, or else the first; of an ON_READ variable the aggregate over all
  /// replicas, for which all workers must read together.
  /// @throws WrongContext when another strategy is active, or outside replicas for an ON_READ variable
  /// without aggregation.
  [[nodiscard]] Tensor read() const {
    const Tensor* own = state_->own_component();
    return own != nullptr ? *own : state_->read_elsewhere();
  }

  /// Overwrites, adds to, or subtracts from the variable.
  ///
  /// Inside a replica the values of all replicas are aggregated first; ON_READ variables and those without
  /// aggregation change the replica's component alone, and a single copy needs an aggregation. Inside an
  /// update only the component changes. Elsewhere every local component does, and all workers must pass the
  /// same; an ON_READ variable with SUM divides the value among the replicas, and cannot be added to.
  /// @throws InvalidArgument when dtype or shape differ, or for a change that these rules exclude;
  /// WrongContext when another strategy is active, and outside replicas for an ON_READ variable without
  /// aggregation: it is written, but has no value to return.
  const Variable& assign(const Tensor& value) const;
  const Variable& assign_add(const Tensor& value) const;
  const Variable& assign_sub(const Tensor& value) const;

  /// The same with a number, for variables of shape [].
  /// @throws InvalidArgument also for a number that an integer or bool variable cannot hold, like 1.5.
  template <Element T>
  const Variable& assign(T value) const {
    return assign(number(value));
  }
  template <Element T>
  const Variable& assign_add(T value) const {
    return assign_add(number(value));
  }
  template <Element T>
  const Variable& assign_sub(T value) const {
    return assign_sub(number(value));
  }

  /// Changes the rows that are named: adds to them, ... or overwrites them (`scatter_update`). Rows named
  /// twice are changed twice, in their order. Contexts as for `assign`, except that SUM and MEAN concatenate
  /// the rows of all replicas (MEAN divides their values by the number of replicas), and that a single copy
  /// takes the rows of every replica as they are.
  /// @throws InvalidArgument when the rows do not fit, or for a division by the integer 0;
  /// Unimplemented for ON_READ variables, and for min, max and update of mirrored variables that
  /// aggregate by SUM or MEAN.
  const Variable& scatter_add(const IndexedSlices& rows) const;
  const Variable& scatter_sub(const IndexedSlices& rows) const;
  const Variable& scatter_mul(const IndexedSlices& rows) const;
  const Variable& scatter_div(const IndexedSlices& rows) const;
  const Variable& scatter_min(const IndexedSlices& rows) const;
  const Variable& scatter_max(const IndexedSlices& rows) const;
  const Variable& scatter_update(const IndexedSlices& rows) const;

  /// The storage: one component per local replica, or a single one; for optimizers and checkpoints. None
  /// where a parameter server keeps the variable.
  [[nodiscard]] std::span<const Tensor> components() const& noexcept { return state_->components(); }
  [[nodiscard]] std::vector<Tensor> components() && {
    return {state_->components().begin(), state_->components().end()};
  }

  /// `name` for the first component, `name/replica_2` for that of local replica 2.
  [[nodiscard]] std::string component_name(int component) const;

  /// The component of the calling replica or update itself, for code that writes it and keeps replicas equal
  /// by its own means, or that reads it without the cost of a handle.
  /// @throws WrongContext outside replicas and updates of the variable's strategy, and for a copy that
  /// several replicas share. Any caller gets a plain variable's only component.
  [[nodiscard]] const Tensor& replica_component() const& { return state_->writable_component(); }
  [[nodiscard]] Tensor replica_component() && { return state_->writable_component(); }

  /// What all handles of this variable share. Internal.
  [[nodiscard]] const std::shared_ptr<VariableState>& state() const& noexcept { return state_; }
  [[nodiscard]] std::shared_ptr<VariableState> state() && noexcept { return std::move(state_); }

  /// Whether two handles denote one variable.
  friend bool operator==(const Variable& a, const Variable& b) { return a.state_ == b.state_; }

 private:
  /// `value` in this variable's dtype.
  template <Element T>
  [[nodiscard]] Tensor number(T value) const {
    return state_->or_abort_replicas([&] {
      Tensor result = Tensor::scalar(value).cast(dtype());
      if (!is_floating(dtype()) && result.item<double>() != convert_element<double>(value)) {
        throw InvalidArgument("variable '{}' is {}, which cannot hold {}", name(), to_string(dtype()),
                              convert_element<double>(value));
      }
      return result;
    });
  }

  std::shared_ptr<VariableState> state_;
};

}  // namespace cohort
