// Which blocks of a store's memory file are in use. Only the process that writes keeps this: another that
// goes on from the file finds the blocks that its variables and commits name, and takes all else as free. So
// nothing is lost when a process ends between taking a block and naming it. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store_mapping.h"

namespace cohort::server {

class StoreBlocks {
 public:
  struct Range {
    std::uint64_t begin;
    std::uint64_t bytes;
    friend auto operator<=>(const Range&, const Range&) = default;
  };

  /// `used` are all blocks in use. Pages after the last of them go back to the system.
  /// @throws DataLoss when two of them overlap.
  StoreBlocks(const StoreMapping& mapping, std::vector<Range> used);

  /// The position of a block of zeros. @throws Unavailable when memory is short, saying what it is for.
  [[nodiscard]] std::uint64_t allocate(std::uint64_t bytes, std::string_view purpose);

  /// Takes back what `allocate(bytes)` returned.
  void release(std::uint64_t begin, std::uint64_t bytes);

 private:
  void add_free(std::uint64_t begin, std::uint64_t bytes);
  void remove_free(std::map<std::uint64_t, std::uint64_t>::iterator free);
  void grow(std::uint64_t bytes, std::string_view purpose);

  const StoreMapping& mapping_;
  std::map<std::uint64_t, std::uint64_t> free_;  // bytes by position; none touch each other
  std::set<std::pair<std::uint64_t, std::uint64_t>> free_by_size_;  // bytes, position
  std::uint64_t end_ = kBlocksBegin;     // of the last block that was ever in use: zeros from here on
  std::uint64_t backed_ = kBlocksBegin;  // up to here there are pages
};

}  // namespace cohort::server
