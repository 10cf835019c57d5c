// How a program changes a variable: `assign` and its kin change components element by element, the scatter
// functions change rows of them. What a collective of a variable is for: which operation, of which variable.
// And the kinds of variables that a strategy makes for several replicas: what each does where replicas write
// and where it is read outside of them. VariableState has the rules of a variable with one replica.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/device/tensor.h>
#include <cohort/value/detail/variable_state.h>
#include <cohort/value/indexed_slices.h>

namespace cohort {

/// What a program does to a variable, by the name of the function: `assign`.
struct VariableOperation {
  constexpr VariableOperation(const char* function)  // NOLINT(google-explicit-constructor): it is its name
      : name(function), id(fingerprint_of(name)) {}

  std::string_view name;
  std::uint64_t id;
};

/// What a collective of a variable is for.
class VariablePurpose final : public CallPurpose {
 public:
  /// In a replica on `device`.
  VariablePurpose(const VariableOperation& operation, const VariableState& variable, Device device)
      : VariablePurpose(operation, variable, Caller::kReplica, device) {}
  /// In cross-replica context.
  VariablePurpose(const VariableOperation& operation, const VariableState& variable)
      : VariablePurpose(operation, variable, Caller::kWorker, {}) {}

 private:
  VariablePurpose(const VariableOperation& operation, const VariableState& variable, Caller caller,
                  Device device)
      : CallPurpose(Fingerprint().add(operation.id).add(variable.number()).value(), caller, device),
        operation_(operation),
        variable_(variable) {}

  [[nodiscard]] PurposeWords own_words() const override {
    return {fmt::format("{}s {}", operation_.name, variable_.options().name),
            fmt::format("variable number {} of {}", variable_.number(), variable_.owner()->strategy_name())};
  }

  const VariableOperation& operation_;
  const VariableState& variable_;
};

/// How a value changes a component of the same dtype and shape: `assign`, `assign_add` and `assign_sub`.
struct ElementUpdate {
  VariableOperation operation;
  void (*apply)(const Tensor& component, const Tensor& value);
};

extern const ElementUpdate kAssign;
extern const ElementUpdate kAssignAdd;
extern const ElementUpdate kAssignSub;

/// How rows change the rows of a component: `scatter_add` and the other scatter functions. The rows have been
/// checked to fit the component (see `validate`).
struct RowUpdate {
  VariableOperation operation;
  void (*apply)(const Tensor& component, const IndexedSlices& rows);
  bool aggregates;  ///< whether the rows of several replicas may be put together by SUM or MEAN
};

extern const RowUpdate kScatterAdd;
extern const RowUpdate kScatterSub;
extern const RowUpdate kScatterMul;
extern const RowUpdate kScatterDiv;
extern const RowUpdate kScatterMin;
extern const RowUpdate kScatterMax;
extern const RowUpdate kScatterUpdate;

/// A component per local replica, and every write leaves them equal (ON_WRITE): what replicas assign is
/// aggregated first, by SUM, MEAN or ONLY_FIRST_REPLICA. With NONE, each replica writes its own, and keeping
/// them equal is up to the caller.
///
/// No replica waits for another one to write: all get the same bits from the aggregation, and each updates
/// its own component.
class MirroredVariable final : public VariableState {
 public:
  using VariableState::VariableState;

 private:
  void assign_in_replica(const ElementUpdate& update, const Tensor& value, int local_replica) const override;
  void scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                          int local_replica) const override;
  [[nodiscard]] bool communicates_in_replica() const noexcept override {
    return options().aggregation != VariableAggregation::kNone;
  }
  void require_scatter(const RowUpdate& update) const override;
};

/// A component per local replica, which only that replica writes; a read outside replicas aggregates them
/// (ON_READ). For statistics and metrics, which then cost no communication per step.
class SyncOnReadVariable final : public VariableState {
 public:
  using VariableState::VariableState;

 private:
  [[nodiscard]] Tensor read_across() const override;
  void assign_across(const ElementUpdate& update, const Tensor& value) const override;
  [[noreturn]] void require_scatter(const RowUpdate& update) const override;
  void share_out(const ElementUpdate& update, const Tensor& sum) const;
};

/// One copy on the parameter device, which all local replicas read. The values that they assign are
/// aggregated first, and applied once while all of them pause.
class AggregatingVariable : public VariableState {
 public:
  using VariableState::VariableState;

 protected:
  void assign_in_replica(const ElementUpdate& update, const Tensor& value, int local_replica) const override;
  void scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                          int local_replica) const override;

  /// Changes the copy, while the replicas pause.
  virtual void write(const ElementUpdate& update, const Tensor& value) const;
  virtual void write_rows(const RowUpdate& update, const IndexedSlices& rows) const;
};

}  // namespace cohort
