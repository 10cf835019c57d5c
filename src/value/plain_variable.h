// One component and one writer: the variable of code outside any scope, and of strategies
// with a single replica and a single copy. Synchronization and aggregation have nothing to do.
#pragma once

#include <cohort/value/variable_state.h>

namespace cohort {

class PlainVariable final : public VariableState {
 public:
  PlainVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner, Tensor component);

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
