// Reads variables straight out of the memory of a parameter server of this node, while the server changes
// them. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <cohort/device/tensor.h>

#include "server/store.h"

namespace cohort::server {

class StoreReader {
 public:
  /// Maps the store's memory file for reading. @throws DataLoss when it is not a store of this version.
  explicit StoreReader(int descriptor);
  ~StoreReader();
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;

  /// The number of variables.
  [[nodiscard]] std::uint64_t size() const;

  /// Copies the current value to `destination`, which has the variable's size. Returns the version that was
  /// read; nothing if the server changed it so often meanwhile that another way must be taken.
  [[nodiscard]] std::optional<std::uint64_t> read(VariableIndex variable,
                                                  std::span<std::byte> destination) const;

  /// The same for rows: row `rows[i]` goes to place `i`. The rows lie within the variable.
  [[nodiscard]] std::optional<std::uint64_t> read_rows(VariableIndex variable,
                                                       std::span<const std::int64_t> rows,
                                                       std::span<std::byte> destination) const;

  [[nodiscard]] std::uint64_t version(VariableIndex variable) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::server
