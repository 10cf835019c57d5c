// One copy on the parameter device, which all local replicas read. The values that they assign are aggregated
// first, and applied once while all of them pause.
#pragma once

#include <cohort/value/detail/variable_state.h>

namespace cohort {

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
