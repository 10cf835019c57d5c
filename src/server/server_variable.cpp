#include "server/server_variable.h"

#include <utility>

#include "value/element_update.h"
#include "value/read_cache.h"
#include "value/row_update.h"
#include "value/thread_scopes.h"

namespace cohort::server {

ServerVariable::ServerVariable(VariableOptions options, std::shared_ptr<VariableOwner> owner,
                               const Shape& shape, DType dtype, std::uint64_t number,
                               std::shared_ptr<Client> client, VariablePlace place)
    : AggregatingVariable(std::move(options), std::move(owner), shape, dtype, number),
      client_(std::move(client)),
      place_(place) {}

bool ServerVariable::is_shared_here() const {
  return current_mode().kind == ContextKind::kReplica && strategy().local_replicas() > 1;
}

Wanted ServerVariable::wanted(std::optional<Tensor> rows) const {
  return {place_.server, place_.index, shape(), dtype(), std::move(rows)};
}

Tensor ServerVariable::read_across() const {
  ReadCache* const cache = thread_scopes().cache;
  if (cache == nullptr) return client_->read(wanted());
  if (std::optional<Tensor> value = cache->find(*this)) return std::move(*value);
  return cache->keep(*this, client_->read(wanted()));
}

void ServerVariable::assign_across(const ElementUpdate& update, const Tensor& value) const {
  if (is_shared_here()) return assign_in_replica(update, value, current_mode().local_replica);
  write(update, value);
}

void ServerVariable::scatter_across(const RowUpdate& update, const IndexedSlices& rows) const {
  if (is_shared_here()) return scatter_in_replica(update, rows, current_mode().local_replica);
  write_rows(update, rows);
}

void ServerVariable::write(const ElementUpdate& update, const Tensor& value) const {
  client_->write(place_.server,
                 {place_.index, kind_of(update.operation.name), value, {}, {}, Write::kNotRead});
}

void ServerVariable::write_rows(const RowUpdate& update, const IndexedSlices& rows) const {
  client_->write(place_.server, {place_.index,
                                 kind_of(update.operation.name),
                                 rows.values,
                                 rows.indices.on_host().cast(DType::kInt64),
                                 {},
                                 Write::kNotRead});
}

void ServerVariable::apply_elsewhere(const OptimizerRecipe& optimizer, const TensorOrSlices& gradient) const {
  if (const auto* rows = std::get_if<IndexedSlices>(&gradient)) {
    client_->write(place_.server, {place_.index, WriteKind::kOptimizeRows, rows->values,
                                   rows->indices.on_host().cast(DType::kInt64), optimizer,
                                   client_->last_read(place_.server, place_.index)});
  } else {
    client_->write(place_.server, {place_.index,
                                   WriteKind::kOptimize,
                                   std::get<Tensor>(gradient),
                                   {},
                                   optimizer,
                                   client_->last_read(place_.server, place_.index)});
  }
}

Tensor ServerVariable::read_slot_elsewhere(std::uint8_t slot) const {
  Wanted slot_wanted = wanted();
  slot_wanted.slot = slot;
  if (slot == kSteps) {
    slot_wanted.shape = {};
    slot_wanted.dtype = DType::kInt64;
  }
  return client_->read(slot_wanted);
}

void ServerVariable::assign_slot_elsewhere(std::uint8_t slot, const Tensor& value) const {
  Write write{.variable = place_.index, .kind = WriteKind::kAssignSlot, .value = value};
  write.slot = slot;
  client_->write(place_.server, write);
}

}  // namespace cohort::server
