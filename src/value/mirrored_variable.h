// A component per local replica, and every write leaves them equal (ON_WRITE): what replicas
// assign is aggregated first, by SUM, MEAN or ONLY_FIRST_REPLICA. With NONE, each replica
// writes its own, and keeping them equal is up to the caller.
//
// No replica waits for another one to write: all get the same bits from the aggregation, and
// each updates its own component.
#pragma once

#include <cohort/value/detail/variable_state.h>

namespace cohort {

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

}  // namespace cohort
