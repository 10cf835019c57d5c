// The kinds of variables that a strategy makes for several replicas, and what each does where replicas write
// and where it is read outside of them. VariableState has the rules of a variable with one replica.
#pragma once

#include <cohort/value/detail/variable_state.h>

namespace cohort {

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
