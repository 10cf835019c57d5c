#include "write.h"

#include <algorithm>
#include <array>

#include <cohort/collective/reduce_op.h>

#include "collective/kernels/reduce_tensors.h"
#include "value/variable_kinds.h"

namespace cohort::server {
namespace {

const RowUpdate* row_update(WriteKind kind) {
  switch (kind) {
    case WriteKind::kScatterAdd: return &kScatterAdd;
    case WriteKind::kScatterSub: return &kScatterSub;
    case WriteKind::kScatterMul: return &kScatterMul;
    case WriteKind::kScatterDiv: return &kScatterDiv;
    case WriteKind::kScatterMin: return &kScatterMin;
    case WriteKind::kScatterMax: return &kScatterMax;
    case WriteKind::kScatterUpdate: return &kScatterUpdate;
    default: return nullptr;
  }
}

void assign(const Write& write, const Store::Change& change) {
  if (write.kind == WriteKind::kAssign) return change.fresh_value.copy_from(write.value);
  if (write.kind == WriteKind::kAssignAdd && write.value.dtype() != DType::kBool)
    return reduce_into(ReduceOp::kSum, std::array{change.old_value, write.value}, change.fresh_value);
  copy_if_apart(change.old_value, change.fresh_value);
  (write.kind == WriteKind::kAssignAdd ? kAssignAdd : kAssignSub).apply(change.fresh_value, write.value);
}

/// Adds a value that lies elsewhere, piece by piece through the cache.
void add_from(const ValueInPeer& value, const Store::Change& change) {
  constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
  const Tensor before = change.old_value.reshape({-1});
  const Tensor after = change.fresh_value.reshape({-1});
  const auto element_bytes = static_cast<std::int64_t>(size_of(value.dtype()));
  const std::int64_t elements = before.shape()[0];
  const std::int64_t at_a_time = static_cast<std::int64_t>(kPieceBytes) / element_bytes;
  const Tensor piece = Tensor::uninitialized({std::min(at_a_time, elements)}, value.dtype());
  for (std::int64_t begin = 0; begin < elements; begin += at_a_time) {
    const std::int64_t end = std::min(begin + at_a_time, elements);
    Tensor added = piece.rows(0, end - begin);
    value.read(static_cast<std::size_t>(begin * element_bytes), added.raw());
    reduce_into(ReduceOp::kSum, std::array{before.rows(begin, end), added}, after.rows(begin, end));
  }
}

/// Whether the value needs not be copied as a whole before it is applied.
bool can_stream(const Write& write) {
  return write.kind == WriteKind::kAssign ||
         (write.kind == WriteKind::kAssignAdd && write.elsewhere->dtype() != DType::kBool);
}

void assign_from(const Write& write, const Store::Change& change) {
  if (write.kind == WriteKind::kAssignAdd) return add_from(*write.elsewhere, change);
  Tensor fresh = change.fresh_value;
  write.elsewhere->read(0, fresh.raw());
}

/// The slots stay: the other copies get their values.
void keep_slots(const Store::Change& change) {
  for (std::size_t i = 0; i < change.fresh_slots.size(); ++i)
    copy_if_apart(change.old_slots[i], change.fresh_slots[i]);
}

void assign_slot(const Write& write, Store& store) {
  if (write.slot == VariableState::kSteps)
    return set_steps(store, write.variable, write.value.item<std::int64_t>());
  store.require_slots(write.variable, std::size_t{write.slot} + 1);
  const Store::Change change = store.overwrite(write.variable);
  copy_if_apart(change.old_value, change.fresh_value);
  keep_slots(change);
  change.fresh_slots[write.slot].copy_from(write.value);
}

}  // namespace

WriteKind kind_of(std::string_view function) {
  static constexpr std::array<std::pair<std::string_view, WriteKind>, 10> kKinds{{
      {"assign", WriteKind::kAssign},
      {"assign_add", WriteKind::kAssignAdd},
      {"assign_sub", WriteKind::kAssignSub},
      {"scatter_add", WriteKind::kScatterAdd},
      {"scatter_sub", WriteKind::kScatterSub},
      {"scatter_mul", WriteKind::kScatterMul},
      {"scatter_div", WriteKind::kScatterDiv},
      {"scatter_min", WriteKind::kScatterMin},
      {"scatter_max", WriteKind::kScatterMax},
      {"scatter_update", WriteKind::kScatterUpdate},
  }};
  for (const auto& [name, kind] : kKinds) {
    if (name == function) return kind;
  }
  throw Internal("no parameter server knows '{}'", function);
}

bool changes_rows(WriteKind kind) noexcept {
  return kind == WriteKind::kOptimizeRows || row_update(kind) != nullptr;
}

void encode(Encoder& encoder, const Write& write, Carriage carriage) {
  if (carriage == Carriage::kByAddress && !ValueInPeer::is_worth_it(write.value))
    carriage = Carriage::kInMessage;
  encoder.number(write.variable);
  encoder.number(write.kind);
  encoder.number(carriage);
  switch (carriage) {
    case Carriage::kInMessage: encoder.tensor(write.value); break;
    case Carriage::kAtEnd: encoder.tensor_at_end(write.value); break;
    case Carriage::kByAddress: ValueInPeer::encode(encoder, write.value); break;
  }
  if (changes_rows(write.kind)) encoder.tensor(write.indices);
  if (write.kind == WriteKind::kAssignSlot) encoder.number(write.slot);
  if (write.kind != WriteKind::kOptimize && write.kind != WriteKind::kOptimizeRows) return;
  encoder.text(write.optimizer.type);
  encoder.blob(write.optimizer.options);
  encoder.number(write.read_version);
}

Write decode_write(Decoder& decoder, const Sender& sender) {
  Write write;
  write.variable = decoder.number<VariableIndex>();
  write.kind = decoder.number<WriteKind>();
  if (write.kind > WriteKind::kAssignSlot) throw DataLoss("a message from another task has an unknown write");
  switch (decoder.number<Carriage>()) {
    case Carriage::kInMessage: write.value = decoder.tensor(); break;
    case Carriage::kAtEnd:
      write.value = decoder.tensor_at_end();
      write.in_message = true;
      break;
    case Carriage::kByAddress: write.elsewhere.emplace(sender, decoder); break;
    default: throw DataLoss("a message from another task brings a value in an unknown way");
  }
  if (changes_rows(write.kind)) write.indices = decoder.tensor();
  if (write.kind == WriteKind::kAssignSlot) write.slot = decoder.number<std::uint8_t>();
  if (write.kind != WriteKind::kOptimize && write.kind != WriteKind::kOptimizeRows) return write;
  write.optimizer.type = decoder.text();
  const std::span<const std::byte> options = decoder.blob();
  write.optimizer.options.assign(options.begin(), options.end());
  write.read_version = decoder.number<std::uint64_t>();
  return write;
}

void require_fitting(const Write& write, const Store& store) {
  if (write.variable >= store.size()) throw NoVariable();
  const bool is_steps = write.kind == WriteKind::kAssignSlot && write.slot == VariableState::kSteps;
  const Tensor value = is_steps ? Tensor::scalar(std::int64_t{0}) : store.value(write.variable);
  const Shape& shape = write.elsewhere ? write.elsewhere->shape() : write.value.shape();
  const DType dtype = write.elsewhere ? write.elsewhere->dtype() : write.value.dtype();
  const bool rows = changes_rows(write.kind);
  const bool fits = rows ? value.shape().rank() > 0 && shape.rank() == value.shape().rank() &&
                               shape.with(0, 0) == value.shape().with(0, 0)
                         : shape == value.shape();
  if (!fits || dtype != value.dtype()) {
    throw InvalidArgument("{}{} does not fit variable '{}', which is {}", to_string(dtype), to_string(shape),
                          store.name(write.variable), describe(value));
  }
  if (!rows) return;
  if (!write.elsewhere) return validate({write.value, write.indices, value.shape()});
  if (write.indices.shape() != Shape{shape[0]}) {
    throw InvalidArgument("{}{} comes with {} as the rows of variable '{}' that it changes", to_string(dtype),
                          to_string(shape), describe(write.indices), store.name(write.variable));
  }
}

void fetch_value(Write& write) {
  if (write.in_message) write.value = write.value.clone();
  write.in_message = false;
  if (!write.elsewhere) return;
  write.value = write.elsewhere->read();
  write.elsewhere.reset();
}

void apply(const Write& write, Store& store, OptimizersOnServer& optimizers) {
  require_fitting(write, store);
  if (write.elsewhere && !can_stream(write)) {
    Write fetched = write;
    fetch_value(fetched);
    return apply(fetched, store, optimizers);
  }
  if (write.kind == WriteKind::kOptimize)
    return optimizers.step(write.optimizer, store, write.variable, write.value);
  if (write.kind == WriteKind::kAssignSlot) return assign_slot(write, store);
  if (!changes_rows(write.kind)) {
    const Store::Change change = store.overwrite(write.variable);
    if (write.elsewhere)
      assign_from(write, change);
    else
      assign(write, change);
    return keep_slots(change);
  }
  const Tensor indices = write.indices.cast(DType::kInt64);
  const std::span<const std::int64_t> rows = indices.span<std::int64_t>();
  if (write.kind == WriteKind::kOptimizeRows)
    return optimizers.step_rows(write.optimizer, store, write.variable, write.value, rows);
  const Store::Change change = store.change_rows(write.variable, rows);
  row_update(write.kind)->apply(change.fresh_value, {write.value, indices, change.fresh_value.shape()});
}

}  // namespace cohort::server
