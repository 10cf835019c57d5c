// A variable that a parameter server keeps, as a client sees it. Reads copy the value; where the server is on
// the same node, straight out of its memory. Writes are made at once, or with the others of the execution
// that is running.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "server/client.h"
#include "server/write.h"
#include "value/aggregating_variable.h"

namespace cohort::server {

/// Which variable of which server.
struct VariablePlace {
  int server = 0;
  VariableIndex index = 0;
};

class ServerVariable final : public AggregatingVariable {
 public:
  ServerVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner, const Shape& shape,
                 DType dtype, std::uint64_t number, std::shared_ptr<Client> client, VariablePlace place);

  [[nodiscard]] VariablePlace place() const noexcept { return place_; }

  [[nodiscard]] Client& client() const noexcept { return *client_; }

  /// For Client::read: all of the variable, or some of the rows (int64, one axis), in their order.
  [[nodiscard]] Wanted wanted(std::optional<Tensor> rows = {}) const;

  void apply_elsewhere(const OptimizerRecipe& optimizer, const TensorOrSlices& gradient) const override;

  [[nodiscard]] Tensor read_slot_elsewhere(std::uint8_t slot) const override;
  void assign_slot_elsewhere(std::uint8_t slot, const Tensor& value) const override;

 private:
  [[nodiscard]] Tensor read_across() const override;
  void assign_across(const ElementUpdate& update, const Tensor& value) const override;
  void scatter_across(const RowUpdate& update, const IndexedSlices& rows) const override;
  void write(const ElementUpdate& update, const Tensor& value) const override;
  void write_rows(const RowUpdate& update, const IndexedSlices& rows) const override;

  /// Whether several replicas of this task share the variable, and one of them calls.
  [[nodiscard]] bool is_shared_here() const;

  std::shared_ptr<Client> client_;
  VariablePlace place_;
};

}  // namespace cohort::server
