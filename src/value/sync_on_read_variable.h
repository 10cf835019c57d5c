// A component per local replica, which only that replica writes; a read outside replicas aggregates them
// (ON_READ). For statistics and metrics, which then cost no communication per step.
#pragma once

#include <cohort/value/detail/variable_state.h>

namespace cohort {

class SyncOnReadVariable final : public VariableState {
 public:
  using VariableState::VariableState;

 private:
  [[nodiscard]] Tensor read_across() const override;
  void assign_across(const ElementUpdate& update, const Tensor& value) const override;
  [[noreturn]] void require_scatter(const RowUpdate& update) const override;
  void share_out(const ElementUpdate& update, const Tensor& sum) const;
};

}  // namespace cohort
