// The memory file of a store in the address space of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <cohort/device/shape.h>

#include "base/system_calls.h"
#include "cluster/sockets.h"
#include "store.h"
#include "store_layout.h"

namespace cohort::server {

/// A memory file without a name. @throws Unavailable.
[[nodiscard]] watch::Fd make_store_file();

/// A store's file, mapped as large as it can ever become: what is added to the file later is there
/// without another mapping. It begins at a huge page in every process, for the kernel to use them. Any thread
/// may call, but `back_with_pages` is for the thread that writes.
class StoreMapping {
 public:
  enum class Access { kRead, kWrite };

  /// Maps a duplicate of `descriptor`. With the right to write, an empty file becomes a store without
  /// variables.
  /// @throws DataLoss when the file is not a store of this version; Unavailable when it cannot be mapped.
  StoreMapping(int descriptor, Access access);
  StoreMapping(const StoreMapping&) = delete;
  StoreMapping& operator=(const StoreMapping&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  [[nodiscard]] std::byte* base() const noexcept { return mapping_.data(); }
  [[nodiscard]] std::size_t reserved_bytes() const noexcept { return mapping_.bytes(); }

  /// The size of the file now.
  [[nodiscard]] std::uint64_t file_bytes() const;

  /// What lies at a position of the file.
  template <class T>
  [[nodiscard]] T& at(std::uint64_t position) const noexcept {
    return *reinterpret_cast<T*>(base() + position);
  }
  [[nodiscard]] StoreHeader& header() const noexcept { return at<StoreHeader>(0); }
  [[nodiscard]] VariableEntry& entry(std::uint64_t variable) const noexcept {
    return at<VariableEntry>(kTableBegin + variable * sizeof(VariableEntry));
  }
  [[nodiscard]] RecordedChange& recorded_change(std::uint64_t place) const noexcept {
    return at<RecordedChange>(kChangesBegin + place * sizeof(RecordedChange));
  }

  /// Gives a part of the file its pages, where it has none yet; the file grows to the end of the part. Asked
  /// before, the kernel refuses what does not fit; a first touch would end the process instead.
  /// @throws Unavailable when memory is short, saying what it is for.
  void back_with_pages(std::uint64_t begin, std::uint64_t bytes, std::string_view purpose) const;

  /// Gives back the pages from `size` on.
  void shrink(std::uint64_t size) const;

  /// Whether the bytes lie in the blocks of a file of this size.
  [[nodiscard]] static bool in_blocks(std::uint64_t begin, std::uint64_t bytes,
                                      std::uint64_t file_bytes) noexcept {
    return begin >= kBlocksBegin && begin <= file_bytes && bytes <= file_bytes - begin;
  }

 private:
  void reserve_new();
  void map_existing(Access access);
  bool map(std::uint64_t bytes, Access access);
  void use_huge_pages(std::uint64_t begin, std::uint64_t bytes) const;

  watch::Fd file_;
  MappedRange mapping_;
};

/// The shape of a variable, after a check of its entry. `file_bytes` is the size of the file.
/// @throws DataLoss when the entry is damaged.
[[nodiscard]] Shape checked_shape(const VariableEntry& entry, std::uint64_t variable,
                                  std::uint64_t file_bytes);

}  // namespace cohort::server
