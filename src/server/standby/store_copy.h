// The memory file of a store as a sequence of chunks, and back. Pages that hold nothing are left out. The
// page with the header is written last: a copy that is not complete is no store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "server/store/store.h"

namespace cohort::server {

/// What is copied, as the receiver is told before the first chunk.
struct StoreCopyPlan {
  std::uint64_t identity = 0;  ///< of the store
  std::uint64_t file_bytes = 0;
  std::uint64_t variables = 0;
};

struct StoreChunk {
  std::uint64_t position = 0;  ///< in the file
  std::vector<std::byte> bytes = {};
};

/// Reads the chunks of a store, which does not change before the last one.
class StoreCopySource {
 public:
  /// `store` outlives it.
  explicit StoreCopySource(const Store& store);

  [[nodiscard]] const StoreCopyPlan& plan() const noexcept { return plan_; }

  /// In the order of their positions; nothing after the last one. @throws Unavailable.
  [[nodiscard]] std::optional<StoreChunk> next();

  /// Of the chunks until now.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  int file_;
  StoreCopyPlan plan_;
  std::uint64_t position_ = 0;
  std::uint64_t bytes_ = 0;
};

/// Writes the chunks into another file.
class StoreCopyTarget {
 public:
  /// Empties `file`, a memory file that outlives it, and gives it the memory that the copy takes.
  /// @throws DataLoss for a plan of no store; Unavailable when memory is short.
  StoreCopyTarget(int file, const StoreCopyPlan& plan);

  /// @throws DataLoss for a chunk that is not in the file, or does not come after the last one.
  void write(std::uint64_t position, std::span<const std::byte> bytes);

  /// After the last chunk: from here on the file is a store. @throws DataLoss when the chunks do not have
  /// `bytes` bytes, or are none of the store that was announced.
  void finish(std::uint64_t bytes);

 private:
  void put(std::uint64_t position, std::span<const std::byte> bytes) const;
  void back_with_pages(std::uint64_t begin, std::uint64_t bytes) const;

  int file_;
  StoreCopyPlan plan_;
  std::vector<std::byte> header_page_;
  std::uint64_t position_ = 0;  ///< the end of the last chunk
  std::uint64_t bytes_ = 0;
};

}  // namespace cohort::server
