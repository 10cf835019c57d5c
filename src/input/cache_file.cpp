#include <cohort/input/detail/cache_file.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>

#include "base/files.h"

namespace cohort::detail {
namespace {

// On a machine of another byte order, neither number matches.
constexpr std::uint64_t kMagic = 0x6568636174726f63;
constexpr std::uint64_t kVersion = 2;

struct FileHeader {
  std::uint64_t magic = kMagic;
  std::uint64_t version = kVersion;
};

struct FileEnd {
  std::uint64_t records = 0;
  std::uint64_t checksum = 0;  // of the number of records and the length of the file
};

std::uint64_t checksum_of_end(std::uint64_t records, std::uint64_t end_of_records) {
  return Fingerprint().add(kMagic).add(records).add(end_of_records).value();
}

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  Fingerprint checksum;
  checksum.add(bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = std::min(bytes.size(), sizeof word);
    std::memcpy(&word, bytes.data(), count);
    checksum.add(word);
    bytes = bytes.subspan(count);
  }
  return checksum.value();
}

}  // namespace

std::string path_of_part(const std::string& path, const Shard& shard) {
  return fmt::format("{}.{}-of-{}", path, shard.index, shard.count);
}

struct CacheFileReader::RecordHeader {
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};

void remove_abandoned_caches(const std::string& path) noexcept { remove_abandoned(path); }

CacheFileWriter::CacheFileWriter(std::string path)
    : path_(std::move(path)), new_file_(std::make_unique<NewFile>(path_)) {
  const int descriptor = ::dup(new_file_->descriptor());
  file_.reset(descriptor < 0 ? nullptr : ::fdopen(descriptor, "wb"));
  if (!file_) throw Unavailable("cannot write the cache '{}': {}", path_, std::strerror(errno));
  const FileHeader header;
  write(&header, sizeof header);
}

CacheFileWriter::~CacheFileWriter() = default;

void CacheFileWriter::write(const void* data, std::size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_.get()) == bytes) return;
  throw Unavailable("cannot write the cache '{}': {}", path_, std::strerror(errno));
}

void CacheFileWriter::append(std::span<const std::byte> record) {
  const std::uint64_t header[] = {record.size(), checksum_of(record)};
  write(header, sizeof header);
  write(record.data(), record.size());
  ++records_;
}

void CacheFileWriter::finish() {
  const auto end_of_records = static_cast<std::uint64_t>(std::ftell(file_.get()));
  const FileEnd end{.records = records_, .checksum = checksum_of_end(records_, end_of_records)};
  write(&end, sizeof end);
  if (std::fclose(file_.release()) != 0)
    throw Unavailable("cannot write the cache '{}': {}", path_, std::strerror(errno));
  new_file_->publish();
}

CacheFileReader::CacheFileReader(std::string path)
    : path_(std::move(path)), file_(::fdopen(open_regular_file(path_, "cache"), "rb")) {
  struct stat status {};
  if (!file_ || fstat(fileno(file_.get()), &status) != 0) {
    throw Unavailable("cannot open cache '{}': {}", path_, std::strerror(errno));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  FileHeader header;
  FileEnd end;
  if (size < sizeof header + sizeof end) throw_damaged("is too short");
  read(&header, sizeof header);
  if (header.magic != kMagic) throw_damaged("is not a cache, or one from a machine of another byte order");
  if (header.version != kVersion) throw_damaged("has another version of the format");
  end_of_records_ = size - sizeof end;
  if (std::fseek(file_.get(), static_cast<long>(end_of_records_), SEEK_SET) != 0) throw_damaged("is cut off");
  read(&end, sizeof end);
  if (end.checksum != checksum_of_end(end.records, end_of_records_)) throw_damaged("is cut off or damaged");
  records_ = end.records;
  position_ = sizeof header;
  if (std::fseek(file_.get(), static_cast<long>(position_), SEEK_SET) != 0) throw_damaged("cannot be read");
}

std::span<const std::byte> CacheFileReader::next() {
  const RecordHeader header = read_header();
  record_.resize(header.bytes);
  read(record_.data(), record_.size());
  if (checksum_of(record_) != header.checksum) throw_damaged("is damaged: a checksum is wrong");
  return record_;
}

std::int64_t CacheFileReader::skip(std::int64_t count) {
  std::int64_t skipped = 0;
  for (; skipped < count && !at_end(); ++skipped) {
    const RecordHeader header = read_header();
    if (std::fseek(file_.get(), static_cast<long>(header.bytes), SEEK_CUR) != 0)
      throw_damaged("cannot be read");
  }
  return skipped;
}

CacheFileReader::RecordHeader CacheFileReader::read_header() {
  RecordHeader header;
  read(&header, sizeof header);
  position_ += sizeof header;
  if (position_ > end_of_records_ || header.bytes > end_of_records_ - position_) {
    throw_damaged("is damaged: a record is longer than the file");
  }
  position_ += header.bytes;
  ++read_;
  return header;
}

void CacheFileReader::read(void* data, std::size_t bytes) {
  if (std::fread(data, 1, bytes, file_.get()) == bytes) return;
  throw DataLoss("cannot read the cache '{}': {}", path_,
                 std::ferror(file_.get()) != 0 ? std::strerror(errno) : "it ends too early");
}

void CacheFileReader::throw_damaged(const char* what) const {
  throw DataLoss("the cache '{}' {}; remove it, and it will be written again", path_, what);
}

}  // namespace cohort::detail
