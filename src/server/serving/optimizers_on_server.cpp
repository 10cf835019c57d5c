#include "optimizers_on_server.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include <cohort/value/indexed_slices.h>

#include "value/variable_kinds.h"

namespace cohort::server {
namespace {

/// Of a tensor with at least one row.
std::size_t row_bytes(const Tensor& tensor) {
  return tensor.bytes() / static_cast<std::size_t>(tensor.shape()[0]);
}

std::string name_of_steps(const Store& store, VariableIndex variable) {
  return store.name(variable) + "/steps";
}

Store::Change change_steps(Store& store, VariableIndex variable) {
  const std::string name = name_of_steps(store, variable);
  auto counter = store.find(name);
  if (!counter) counter = store.create(name, {}, DType::kInt64);
  return store.overwrite(*counter);
}

/// The number, from 1, of the step that is about to be made.
std::int64_t count_step(Store& store, VariableIndex variable) {
  const Store::Change change = change_steps(store, variable);
  const std::int64_t step = change.old_value.item<std::int64_t>() + 1;
  change.fresh_value.span<std::int64_t>()[0] = step;
  return step;
}

/// All of it, with what was there.
Store::Change overwritten(Store& store, VariableIndex variable) {
  Store::Change change = store.overwrite(variable);
  copy_if_apart(change.old_value, change.fresh_value);
  for (std::size_t i = 0; i < change.fresh_slots.size(); ++i)
    copy_if_apart(change.old_slots[i], change.fresh_slots[i]);
  return change;
}

/// Slots of a variable that no step has changed yet.
void begin_slots(const OptimizerOnServer& optimizer, const Store::Change& change) {
  for (std::size_t i = 0; i < optimizer.slots(); ++i)
    if (optimizer.slot_beginning(i) != 0) change.fresh_slots[i].fill(optimizer.slot_beginning(i));
}

/// The gradient of each row that is named, once: those of a row that is named twice are added.
IndexedSlices merged(const Tensor& gradient, std::span<const std::int64_t> rows, const Shape& dense) {
  std::map<std::int64_t, std::int64_t> place_of_row;
  for (const std::int64_t row : rows) place_of_row.emplace(row, 0);
  IndexedSlices result{
      {}, Tensor::uninitialized({static_cast<std::int64_t>(place_of_row.size())}, DType::kInt64), dense};
  std::int64_t next = 0;
  for (auto& [row, place] : place_of_row) {
    result.indices.span<std::int64_t>()[static_cast<std::size_t>(next)] = row;
    place = next++;
  }
  std::vector<std::int64_t> places;
  for (const std::int64_t row : rows) places.push_back(place_of_row.at(row));
  // In float32 where it has 16 bits, so that the sum of a row that is named often is rounded once.
  const DType dtype = is_half(gradient.dtype()) ? DType::kFloat32 : gradient.dtype();
  const Tensor sums = Tensor::zeros(gradient.shape().with(0, next), dtype);
  kScatterAdd.apply(sums, {gradient.cast(dtype), Tensor::from(places), sums.shape()});
  result.values = sums.cast(gradient.dtype());
  return result;
}

}  // namespace

Tensor gather_rows(const Tensor& from, std::span<const std::int64_t> rows) {
  Tensor result =
      Tensor::uninitialized(from.shape().with(0, static_cast<std::int64_t>(rows.size())), from.dtype());
  if (rows.empty()) return result;
  const std::size_t bytes = row_bytes(from);
  std::byte* to = result.data();
  for (const std::int64_t row : rows)
    to = std::copy_n(from.data() + static_cast<std::size_t>(row) * bytes, bytes, to);
  return result;
}

void scatter_rows(const Tensor& from, std::span<const std::int64_t> rows, const Tensor& to) {
  if (rows.empty()) return;
  const std::size_t bytes = row_bytes(from);
  const std::byte* next = from.data();
  for (const std::int64_t row : rows) {
    std::copy_n(next, bytes, to.data() + static_cast<std::size_t>(row) * bytes);
    next += bytes;
  }
}

std::int64_t steps_of(const Store& store, VariableIndex variable) {
  const auto counter = store.find(name_of_steps(store, variable));
  return counter ? store.value(*counter).item<std::int64_t>() : 0;
}

void set_steps(Store& store, VariableIndex variable, std::int64_t steps) {
  change_steps(store, variable).fresh_value.span<std::int64_t>()[0] = steps;
}

const OptimizerOnServer& OptimizersOnServer::made_from(const OptimizerRecipe& recipe) {
  const auto key = std::pair(recipe.type, recipe.options);
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  constexpr std::size_t kMost = 64;  // a program may change a rate in each step
  if (made_.size() >= kMost) made_.clear();
  return made_.emplace(key, recipe).first->second;
}

void OptimizersOnServer::step(const OptimizerRecipe& recipe, Store& store, VariableIndex variable,
                              const Tensor& gradient) {
  const OptimizerOnServer& optimizer = made_from(recipe);
  store.require_slots(variable, optimizer.slots());
  const std::int64_t step = count_step(store, variable);
  const Store::Change change = overwritten(store, variable);
  if (step == 1) begin_slots(optimizer, change);
  optimizer.update(change.fresh_value, std::span(change.fresh_slots).first(optimizer.slots()), gradient,
                   step);
}

void OptimizersOnServer::step_rows(const OptimizerRecipe& recipe, Store& store, VariableIndex variable,
                                   const Tensor& gradient, std::span<const std::int64_t> rows) {
  const OptimizerOnServer& optimizer = made_from(recipe);
  store.require_slots(variable, optimizer.slots());
  const std::int64_t step = count_step(store, variable);
  const IndexedSlices once = merged(gradient, rows, store.value(variable).shape());
  const std::span<const std::int64_t> changed = once.indices.span<std::int64_t>();
  const Store::Change change = step == 1 && optimizer.has_beginnings() ? overwritten(store, variable)
                                                                       : store.change_rows(variable, changed);
  if (step == 1) begin_slots(optimizer, change);
  const Tensor value = gather_rows(change.fresh_value, changed);
  std::vector<Tensor> slots;
  for (std::size_t i = 0; i < optimizer.slots(); ++i)
    slots.push_back(gather_rows(change.fresh_slots[i], changed));
  optimizer.update(value, slots, once.values, step);
  scatter_rows(value, changed, change.fresh_value);
  for (std::size_t i = 0; i < slots.size(); ++i) scatter_rows(slots[i], changed, change.fresh_slots[i]);
}

}  // namespace cohort::server
