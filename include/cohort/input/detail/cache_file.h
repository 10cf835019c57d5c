// The file of a cache: a header, one record per element, and an end that says how many there are. Each record
// carries a checksum, and the bytes of an element.
//
// A file is written under another name in the same folder, and renamed when it is complete. So a file under
// the name of a cache is complete even if a process died while writing one, and processes that write the same
// cache at the same time do not disturb each other. What a process that died has left is removed by the next
// one that writes the cache, or begins to read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/device/tensor.h>
#include <cohort/input/shard.h>
#include <cohort/value/structure.h>

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

// Elements to bytes and back. The layout follows from the element's type; beside the values only what varies
// is written: lengths, keys, shapes and dtypes. Numbers are in the machine's byte order.

class ByteWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { put_bytes(std::as_bytes(std::span(&value, 1))); }
  void put_bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// The tensor may be on any device.
  void put_tensor(const Tensor& tensor);

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

/// @throws DataLoss, from each function, when the bytes end too early or make no sense.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] T get() {
    if constexpr (std::is_same_v<T, bool>) return get_bool();
    T value;
    std::memcpy(&value, get_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  /// The number of parts that follow, each of at least `least_bytes`.
  [[nodiscard]] std::size_t get_count(std::size_t least_bytes);
  [[nodiscard]] std::span<const std::byte> get_bytes(std::size_t count);
  [[nodiscard]] Tensor get_tensor();
  void require_end() const;

 private:
  /// Any byte but 0 and 1 is undefined as a bool.
  [[nodiscard]] bool get_bool();

  std::span<const std::byte> bytes_;
};

template <class T>
void write_element(ByteWriter& writer, const T& value) {
  const auto each = [&](const auto&... parts) { (write_element(writer, parts), ...); };
  if constexpr (std::is_same_v<T, Tensor>) {
    writer.put_tensor(value);
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || Element<T>) {
    writer.put(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    writer.put(value.size());
    writer.put_bytes(std::as_bytes(std::span(value)));
  } else if constexpr (kIsInstance<T, std::vector>) {
    writer.put(value.size());
    for (const auto& part : value) write_element(writer, part);
  } else if constexpr (kIsInstance<T, std::map>) {
    writer.put(value.size());
    for (const auto& [key, part] : value) each(key, part);
  } else if constexpr (kIsInstance<T, std::optional>) {
    writer.put(value.has_value());
    if (value) write_element(writer, *value);
  } else if constexpr (TupleLike<T>) {
    std::apply(each, value);
  } else if constexpr (WithFields<T>) {
    std::apply(each, cohort_fields(value));
  } else {
    static_assert(
        TupleLike<T>,
        "cannot be written to a file: use tensors, numbers, strings, tuples, vectors, arrays, maps, "
        "optionals, or aggregates that COHORT_FIELDS describes");
  }
}

template <class T>
void read_element(ByteReader& reader, T& value) {
  const auto each = [&](auto&... parts) { (read_element(reader, parts), ...); };
  if constexpr (std::is_same_v<T, Tensor>) {
    value = reader.get_tensor();
  } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T> || Element<T>) {
    value = reader.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    const auto text = reader.get_bytes(reader.get_count(1));
    value.assign(reinterpret_cast<const char*>(text.data()), text.size());
  } else if constexpr (kIsInstance<T, std::vector>) {
    const std::size_t size = reader.get_count(1);
    value.clear();
    for (std::size_t part = 0; part < size; ++part) read_element(reader, value.emplace_back());
  } else if constexpr (kIsInstance<T, std::map>) {
    const std::size_t size = reader.get_count(1);
    value.clear();
    for (std::size_t part = 0; part < size; ++part) {
      typename T::key_type key;
      read_element(reader, key);
      read_element(reader, value[key]);
    }
  } else if constexpr (kIsInstance<T, std::optional>) {
    value.reset();
    if (reader.get<bool>()) read_element(reader, value.emplace());
  } else if constexpr (TupleLike<T>) {
    std::apply(each, value);
  } else {
    std::apply(each, cohort_fields(value));
  }
}

}  // namespace cohort::detail
