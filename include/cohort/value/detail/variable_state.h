// What all handles of one variable share: its components, and the rules of its kind. This
// class knows the contexts and hands each call to the rule for it; its own rules are those
// of a plain variable, where the only replica writes the only component. The other kinds
// (mirrored, ON_READ, a single copy for several replicas, a value that another task keeps) are classes that
// say what differs. Internal: programs use Variable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/value/context.h>
#include <cohort/value/detail/variable_owner.h>
#include <cohort/value/indexed_slices.h>
#include <cohort/value/tensor_or_slices.h>
#include <cohort/value/variable_options.h>

namespace cohort {

struct ElementUpdate;
struct RowUpdate;

/// An optimizer as another task can make it: the name that its class is registered by, and its options.
struct OptimizerRecipe {
  std::string type = {};
  std::vector<std::byte> options = {};

  friend bool operator==(const OptimizerRecipe&, const OptimizerRecipe&) = default;
};

class VariableState {
 public:
  /// `owner` is null for variables of no strategy. A single component serves all local replicas.
  VariableState(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                std::vector<Tensor> components);

  /// A variable without components in this process: another task keeps its value. Tasks know it by `number`.
  VariableState(VariableOptions options, std::shared_ptr<VariableOwner> owner, const Shape& shape,
                DType dtype, std::uint64_t number);
  virtual ~VariableState() = default;

  VariableState(const VariableState&) = delete;
  VariableState& operator=(const VariableState&) = delete;

  [[nodiscard]] const VariableOptions& options() const noexcept { return options_; }
  [[nodiscard]] VariableOwner* owner() const noexcept { return owner_.get(); }

  /// Among the variables of its strategy, the same on all workers; 0 for variables of none.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }

  /// None when another task keeps the value.
  [[nodiscard]] std::span<const Tensor> components() const noexcept { return {by_replica_.data(), count_}; }

  /// Inside a replica or an update of the variable's strategy: its component; null elsewhere.
  [[nodiscard]] const Tensor* own_component() const noexcept {
    const ContextMode& mode = current_mode();
    // Outside replicas the number is -1, so no variable has as many.
    if (static_cast<unsigned>(mode.local_replica) >= replicas_ || mode.strategy != owner_.get())
      return nullptr;
    return &by_replica_[static_cast<std::size_t>(mode.local_replica)];
  }

  /// The same, where the caller alone may write to it; throws elsewhere (see Variable).
  [[nodiscard]] const Tensor& writable_component() const {
    const Tensor* own = own_component();
    return own != nullptr && count_ == by_replica_.size() ? *own : writable_elsewhere();
  }

  /// Whether another task keeps the value.
  [[nodiscard]] bool is_kept_elsewhere() const noexcept { return count_ == 0; }

  /// Only for a variable that is kept elsewhere: has the task that keeps it make one step of an optimizer.
  /// The gradient, of the variable's shape and dtype, has been summed over the local replicas.
  virtual void apply_elsewhere(const OptimizerRecipe& optimizer, const TensorOrSlices& gradient) const;

  /// Only for a variable that is kept elsewhere: what is kept there for its optimizer. That is a slot, with
  /// the variable's shape and dtype, or for `kSteps` the number of steps (int64, a scalar). What no step has
  /// made yet is zero.
  static constexpr std::uint8_t kSteps = 255;
  [[nodiscard]] virtual Tensor read_slot_elsewhere(std::uint8_t slot) const;
  virtual void assign_slot_elsewhere(std::uint8_t slot, const Tensor& value) const;

  /// Runs `call`, part of a change of this variable. If the change is a collective of all replicas and `call`
  /// throws, the other replicas are told, so that they do not wait for this one. @throws what `call` throws.
  template <class Call>
  decltype(auto) or_abort_replicas(Call&& call) const {
    try {
      return std::forward<Call>(call)();
    } catch (const std::exception&) {
      abort_replicas(std::current_exception());
      throw;
    }
  }

  [[nodiscard]] Tensor read_elsewhere() const;
  void assign(const ElementUpdate& update, const Tensor& value) const;
  void scatter(const RowUpdate& update, const IndexedSlices& rows) const;

 protected:
  [[nodiscard]] VariableOwner& strategy() const noexcept { return *owner_; }
  [[nodiscard]] const Tensor& component(int local_replica) const noexcept {
    return by_replica_[static_cast<std::size_t>(local_replica)];
  }

  // The rules of a kind, for calls whose arguments have been checked. In an update, every kind changes the
  // component alone.

  /// In cross-replica context: a copy of the component on the current device, or else of the first.
  [[nodiscard]] virtual Tensor read_across() const;

  /// Changes the replica's component alone.
  virtual void assign_in_replica(const ElementUpdate& update, const Tensor& value, int local_replica) const;
  virtual void scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                                  int local_replica) const;

  /// Whether that is a collective, for which the other replicas wait.
  [[nodiscard]] virtual bool communicates_in_replica() const noexcept { return false; }

  /// In cross-replica context: changes every component. Variables that are kept elsewhere come here in any
  /// context.
  virtual void assign_across(const ElementUpdate& update, const Tensor& value) const;
  virtual void scatter_across(const RowUpdate& update, const IndexedSlices& rows) const;

  /// Throws for updates of rows that the kind does not have, in any context.
  virtual void require_scatter(const RowUpdate& update) const;

 private:
  void abort_replicas(const std::exception_ptr& error) const;
  [[nodiscard]] const Tensor& writable_elsewhere() const;
  void require_own_strategy(std::string_view what) const;
  void require_one_writer(std::string_view what) const;

  VariableOptions options_;
  std::shared_ptr<VariableOwner> owner_;
  Shape shape_;
  DType dtype_;
  std::vector<Tensor> by_replica_;  // one per local replica, which may all be the same one
  std::size_t count_;
  unsigned replicas_;  // how many have an element in by_replica_
  std::uint64_t number_;
};

}  // namespace cohort
