// A variable in the memory of a store: its two copies, and in which rows they differ. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/device/allocator.h>
#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>
#include <cohort/device/tensor.h>

#include "store.h"
#include "store_layout.h"

namespace cohort::server {

class StoredVariable {
 public:
  /// Over an entry whose numbers are right. `memory` is the whole mapping.
  StoredVariable(std::shared_ptr<const Buffer> memory, VariableEntry& entry, const Shape& shape);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::size_t slots() const noexcept { return entry_->slots.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t version() const noexcept {
    return entry_->sequence.load(std::memory_order_relaxed) / 2;
  }

  /// The current copies.
  [[nodiscard]] Tensor value() const { return tensor(entry_->value, version()); }
  [[nodiscard]] Tensor slot(std::size_t slot) const { return tensor(entry_->slot[slot], version()); }

  /// Whether the commit that is being made has changed it.
  [[nodiscard]] bool is_changed() const noexcept { return is_changed_; }

  /// See Store. @throws InvalidArgument for rows that the variable does not have.
  [[nodiscard]] Store::Change overwrite();
  [[nodiscard]] Store::Change change_rows(std::span<const std::int64_t> rows);

  /// Lets the copies change places.
  void publish();
  void abandon();

 private:
  /// A set of rows; `some` may name a row more than once.
  struct Rows {
    bool all = false;
    std::vector<std::int64_t> some = {};
  };

  void require_rows(std::span<const std::int64_t> rows) const;
  void start_change();
  void copy_to_other(const Rows& rows) const;
  [[nodiscard]] Tensor tensor(std::uint64_t first_copy, std::uint64_t version) const;
  [[nodiscard]] Store::Change change(std::uint64_t old_version) const;
  [[nodiscard]] std::size_t rows() const {
    return shape_.rank() == 0 ? 0 : static_cast<std::size_t>(shape_[0]);
  }

  std::shared_ptr<const Buffer> memory_;
  VariableEntry* entry_;
  Shape shape_;
  DType dtype_;
  std::string name_;
  bool is_changed_ = false;
  Rows changed_ = {};            ///< by the commit that is being made
  Rows behind_ = {.all = true};  ///< in which the other copy differs from the current one
};

}  // namespace cohort::server
