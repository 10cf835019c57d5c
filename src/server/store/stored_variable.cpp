#include "stored_variable.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/collective/copy_bytes.h>

namespace cohort::server {
namespace {

/// After the sequence has become odd: no reader sees what is written from now on with the sequence from
/// before.
void write_after_sequence() {
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"  // readers have mappings of their own, so it sees no race here
#endif
  std::atomic_thread_fence(std::memory_order_release);
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic pop
#endif
}

}  // namespace

StoredVariable::StoredVariable(std::shared_ptr<const Buffer> memory, VariableEntry& entry, const Shape& shape)
    : memory_(std::move(memory)),
      entry_(&entry),
      shape_(shape),
      dtype_(static_cast<DType>(entry.dtype)),
      name_(reinterpret_cast<const char*>(memory_->data()) + entry.name, entry.name_bytes) {}

Tensor StoredVariable::tensor(std::uint64_t first_copy, std::uint64_t version) const {
  return Tensor::wrap(memory_, first_copy + version % 2 * copy_stride(entry_->bytes), shape_, dtype_);
}

Store::Change StoredVariable::change(std::uint64_t old_version) const {
  const std::uint64_t fresh_version = version() + 1;
  Store::Change change{tensor(entry_->value, old_version), tensor(entry_->value, fresh_version), {}, {}};
  for (const std::uint64_t slot : std::span(entry_->slot).first(slots())) {
    change.old_slots.push_back(tensor(slot, old_version));
    change.fresh_slots.push_back(tensor(slot, fresh_version));
  }
  return change;
}

Store::Change StoredVariable::overwrite() {
  const bool again = is_changed_;
  start_change();
  changed_ = {.all = true};
  return change(version() + (again ? 1 : 0));
}

Store::Change StoredVariable::change_rows(std::span<const std::int64_t> rows) {
  require_rows(rows);
  const bool again = is_changed_;
  start_change();
  if (!again) copy_to_other(behind_);
  if (!changed_.all) changed_.some.insert(changed_.some.end(), rows.begin(), rows.end());
  // From here on the whole is less work than its rows.
  if (changed_.some.size() >= this->rows()) changed_ = {.all = true};
  return change(version() + (again ? 1 : 0));
}

void StoredVariable::require_rows(std::span<const std::int64_t> rows) const {
  const auto count = static_cast<std::int64_t>(this->rows());
  const auto wrong = std::ranges::find_if(rows, [&](std::int64_t row) { return row < 0 || row >= count; });
  if (wrong != rows.end()) {
    throw InvalidArgument("variable \"{}\" ({}{}) has no row {}; rows count from 0 to {}", name_,
                          to_string(dtype_), to_string(shape_), *wrong, count - 1);
  }
}

void StoredVariable::start_change() {
  if (std::exchange(is_changed_, true)) return;
  changed_ = {};
  const std::uint64_t sequence = entry_->sequence.load(std::memory_order_relaxed);
  entry_->sequence.store(sequence | 1, std::memory_order_relaxed);
  write_after_sequence();
}

void StoredVariable::copy_to_other(const Rows& rows) const {
  const std::uint64_t current = version() % 2 * copy_stride(entry_->bytes);
  const std::uint64_t other = (version() + 1) % 2 * copy_stride(entry_->bytes);
  const CopyKernel copy = copy_kernel();
  const auto catch_up = [&](std::uint64_t first_copy) {
    std::byte* const to = memory_->data() + first_copy + other;
    const std::byte* const from = memory_->data() + first_copy + current;
    if (rows.all) return copy(to, from, entry_->bytes, CopyHint::kCached);
    for (const std::int64_t row : rows.some) {
      const std::uint64_t at = static_cast<std::uint64_t>(row) * entry_->row_bytes;
      copy(to + at, from + at, entry_->row_bytes, CopyHint::kCached);
    }
  };
  catch_up(entry_->value);
  std::ranges::for_each(std::span(entry_->slot).first(slots()), catch_up);
}

void StoredVariable::publish() {
  entry_->sequence.store(2 * (version() + 1), std::memory_order_release);
  is_changed_ = false;
  behind_ = std::exchange(changed_, {});
}

void StoredVariable::abandon() {
  // The sequence stays odd: store_layout.h says why. What `change_rows` caught up with remains.
  is_changed_ = false;
  behind_ = std::exchange(changed_, {});
}

}  // namespace cohort::server
