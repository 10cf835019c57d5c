// A component per local replica, which the replica alone writes; a read outside replicas
// aggregates them (ON_READ): statistics and metrics, which cost no communication per step.
#pragma once

#include <cohort/value/variable_state.h>

namespace cohort {

class SyncOnReadVariable final : public VariableState {
 public:
  SyncOnReadVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                     std::vector<Tensor> components);

 private:
  [[nodiscard]] Tensor read_across() const override;
  void assign_in_replica(const ElementUpdate& update, const Tensor& value, int local_replica) const override;
  void assign_across(const ElementUpdate& update, const Tensor& value) const override;
  void require_scatter(const RowUpdate& update) const override;
  void scatter_in_replica(const RowUpdate& update, const IndexedSlices& rows,
                          int local_replica) const override;
  void scatter_across(const RowUpdate& update, const IndexedSlices& rows) const override;
};

}  // namespace cohort
