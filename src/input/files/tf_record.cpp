// A record is framed by
//     uint64 length, uint32 masked CRC-32C of the length, the bytes, uint32 masked CRC-32C of the bytes
// in little-endian order.
#include <cohort/input/files/tf_record.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <cohort/input/detail/file_source.h>

#include "base/crc32c.h"
#include "foreign_data.h"
#include "input_file.h"

namespace cohort {
namespace {

constexpr std::string_view kTfRecordName = "TFRecord";
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kFooterBytes = 4;

std::uint32_t load_checksum(std::span<const std::byte> bytes) {
  return detail::load<std::uint32_t>(bytes, std::endian::little);
}

class TfRecords final : public ElementIterator<Tensor> {
 public:
  explicit TfRecords(const std::string& path) : file_(path, kTfRecordName) {}

  std::optional<Tensor> next() override {
    if (offset_ == file_.size()) return std::nullopt;
    const std::uint64_t start = offset_;
    const std::size_t length = read_length();
    const auto framed = file_.bytes(start + kHeaderBytes, length + kFooterBytes);
    const bool intact = detail::masked_crc32c(framed.first(length)) == load_checksum(framed.subspan(length));
    if (!intact) {
      throw DataLoss(
          "{}: the record of {} bytes at byte {} does not match its checksum; the file is damaged, "
          "so write it again",
          file_.path(), length, start);
    }
    return file_.tensor(start + kHeaderBytes, {static_cast<std::int64_t>(length)}, DType::kUInt8);
  }

  // The bytes of the records are not checked.
  std::int64_t skip(std::int64_t count) override {
    std::int64_t skipped = 0;
    for (; skipped < count && offset_ < file_.size(); ++skipped) read_length();
    return skipped;
  }

 private:
  /// The length of the current record, which lies within the file; moves on to the next record.
  std::size_t read_length() {
    const std::uint64_t start = offset_;
    const std::uint64_t left = file_.size() - start;
    offset_ = file_.size();  // without a valid length the next record cannot be found
    if (left < kHeaderBytes) {
      throw DataLoss(
          "{}: {} bytes at byte {} are too few for a record, which has {} or more; it is truncated", path(),
          left, start, kHeaderBytes + kFooterBytes);
    }
    const auto header = file_.bytes(start, kHeaderBytes);
    const auto length = detail::load<std::uint64_t>(header, std::endian::little);
    if (detail::masked_crc32c(header.first(kLengthBytes)) != load_checksum(header.subspan(kLengthBytes))) {
      throw DataLoss("{}: the length of the record at byte {} does not match its checksum; {}", path(), start,
                     detail::compression_hint(file_, "the file is damaged, or not a TFRecord file"));
    }
    if (left - kHeaderBytes < kFooterBytes || length > left - kHeaderBytes - kFooterBytes) {
      throw DataLoss(
          "{}: the record at byte {} has {} bytes, but the file ends {} bytes after it begins; "
          "it is truncated",
          path(), start, length, left);
    }
    offset_ = start + kHeaderBytes + length + kFooterBytes;
    return length;
  }

  [[nodiscard]] const std::string& path() const { return file_.path(); }

  detail::MappedFile file_;
  std::uint64_t offset_ = 0;
};

class TfRecordFormat final : public detail::FileFormat<Tensor> {
 public:
  [[nodiscard]] std::string_view name() const override { return kTfRecordName; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const override {
    return std::make_unique<TfRecords>(path);
  }
};

}  // namespace

Dataset<Tensor> tf_record_dataset(std::vector<std::string> files) {
  return Dataset<Tensor>(
      detail::read_files<Tensor>(std::move(files), std::make_shared<const TfRecordFormat>()));
}

TfRecordWriter::TfRecordWriter(std::string path) : path_(std::move(path)) {
  std::error_code unknown;
  if (std::filesystem::is_fifo(path_, unknown)) {
    throw InvalidArgument(
        "cannot write '{}': it is a pipe, and would wait for somebody who reads it; name a file", path_);
  }
  stream_.open(path_, std::ios::binary);
  require_good();
}

detail::TfRecordFrame detail::frame_of(std::span<const std::byte> record) {
  TfRecordFrame frame;
  const std::span length = std::span(frame.header).first(kLengthBytes);
  store<std::uint64_t>(record.size(), length, std::endian::little);
  store(masked_crc32c(length), std::span(frame.header).subspan(kLengthBytes), std::endian::little);
  store(masked_crc32c(record), frame.footer, std::endian::little);
  return frame;
}

void TfRecordWriter::write(std::span<const std::byte> record) {
  const detail::TfRecordFrame frame = detail::frame_of(record);
  for (const std::span<const std::byte> part :
       {std::span<const std::byte>(frame.header), record, std::span<const std::byte>(frame.footer)})
    stream_.write(reinterpret_cast<const char*>(part.data()), static_cast<std::streamsize>(part.size()));
  require_good();
}

void TfRecordWriter::close() {
  stream_.close();
  require_good();
}

void TfRecordWriter::require_good() const {
  if (!stream_) throw Unavailable("cannot write '{}': {}", path_, std::strerror(errno));
}

}  // namespace cohort
