// The file of a cache: a header, one record per element, and an end that says how many there are. Each record
// carries a checksum, and the bytes of an element (value/detail/bytes.h).
//
// A file is written under another name in the same folder, and renamed when it is complete. So a file under
// the name of a cache is complete even if a process died while writing one, and processes that write the same
// cache at the same time do not disturb each other. What a process that died has left is removed by the next
// one that writes the cache, or begins to read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <cohort/input/shard.h>

namespace cohort {
class NewFile;
}

namespace cohort::detail {

/// The path of the cache of one part of a dataset, beside that of the whole dataset.
[[nodiscard]] std::string path_of_part(const std::string& path, const Shard& shard);

/// Removes unfinished caches whose writers are gone.
void remove_abandoned_caches(const std::string& path) noexcept;

struct CloseFile {
  void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

class CacheFileWriter {
 public:
  /// @throws Unavailable when no file can be made beside `path`.
  explicit CacheFileWriter(std::string path);
  /// Removes an incomplete file.
  ~CacheFileWriter();
  CacheFileWriter(const CacheFileWriter&) = delete;
  CacheFileWriter& operator=(const CacheFileWriter&) = delete;

  /// @throws Unavailable when it cannot be written, here and below: the disk may be full.
  void append(std::span<const std::byte> record);
  /// Completes the file and moves it to its place.
  void finish();

 private:
  void write(const void* data, std::size_t bytes);

  std::string path_;
  std::unique_ptr<NewFile> new_file_;
  OpenFile file_;  // a second descriptor of the same file
  std::uint64_t records_ = 0;
};

class CacheFileReader {
 public:
  /// @throws Unavailable when `path` cannot be opened, DataLoss when it is not a complete cache.
  explicit CacheFileReader(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool at_end() const { return read_ == records_; }
  /// The next record, valid until the next call. @throws DataLoss when it is damaged.
  [[nodiscard]] std::span<const std::byte> next();
  /// Skips up to `count` records; returns how many there were.
  std::int64_t skip(std::int64_t count);

 private:
  struct RecordHeader;

  void read(void* data, std::size_t bytes);
  [[nodiscard]] RecordHeader read_header();
  [[noreturn]] void throw_damaged(const char* what) const;

  std::string path_;
  OpenFile file_;
  std::uint64_t end_of_records_ = 0;  // in bytes from the start of the file
  std::uint64_t position_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t read_ = 0;
  std::vector<std::byte> record_;
};

}  // namespace cohort::detail
