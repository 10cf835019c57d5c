// Arrays in files, and the two formats that are little more than one: fixed-length records, and IDX.

#include "array_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/input/detail/file_source.h>
#include <cohort/input/files/fixed_length_record.h>
#include <cohort/input/files/idx.h>

#include "foreign_data.h"

namespace cohort::detail {

std::optional<std::uint64_t> bytes_of(const ArrayHeader& header) {
  auto bytes = static_cast<std::int64_t>(size_of(header.dtype));
  // The rows last, so that 0 rows do not hide the size of one.
  for (std::size_t axis = header.extents.size(); axis-- > 0;) {
    const std::int64_t extent = header.extents[axis];
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return static_cast<std::uint64_t>(bytes);
}

Shape checked_shape(const ArrayHeader& header, std::uint64_t bytes, const std::string& place) {
  const std::string text = fmt::format("{}[{}]", to_string(header.dtype), fmt::join(header.extents, ", "));
  if (header.extents.empty() || header.extents.size() > Shape::kLargestRank) {
    throw InvalidArgument(
        "{}: an array {} cannot be iterated over; it must have from 1 to {} axes, the first "
        "of which counts the elements",
        place, text, Shape::kLargestRank);
  }
  if (std::find(header.extents.begin() + 1, header.extents.end(), 0) != header.extents.end())
    throw InvalidArgument("{}: the rows of {} are empty; there is nothing to read", place, text);
  const std::optional<std::uint64_t> wanted = bytes_of(header);
  if (!wanted || *wanted != bytes) {
    throw DataLoss(
        "{}: the header promises {}, {} bytes, but {} bytes follow it; the file is truncated or "
        "damaged, so write it again",
        place, text, wanted ? fmt::format("{}", *wanted) : "2^63 or more", bytes);
  }
  return Shape(header.extents);
}

namespace {

class ArrayRows final : public ElementIterator<Tensor> {
 public:
  ArrayRows(std::unique_ptr<MappedFile> file, const ArrayLayout& layout)
      : file_(std::move(file)),
        layout_(layout),
        row_bytes_(layout.row.elements() * size_of(layout.dtype)),
        converted_(is_swapped() || layout.offset % size_of(layout.dtype) != 0) {}

  std::optional<Tensor> next() override {
    if (row_ == layout_.rows) return std::nullopt;
    const std::uint64_t offset = layout_.offset + static_cast<std::uint64_t>(row_) * row_bytes_;
    ++row_;
    Tensor row = converted_ ? convert(offset) : file_->tensor(offset, layout_.row, layout_.dtype);
    require_valid_elements(row, file_->path(), offset);
    return row;
  }

  std::int64_t skip(std::int64_t count) override {
    const std::int64_t skipped = std::min(count, layout_.rows - row_);
    row_ += skipped;
    return skipped;
  }

 private:
  [[nodiscard]] bool is_swapped() const {
    return layout_.byte_order != std::endian::native && size_of(layout_.dtype) > 1;
  }

  [[nodiscard]] Tensor convert(std::uint64_t offset) {
    Tensor row = Tensor::uninitialized(layout_.row, layout_.dtype);
    std::memcpy(row.data(), file_->bytes(offset, row_bytes_).data(), row_bytes_);
    if (is_swapped()) swap_bytes(row);
    return row;
  }

  std::unique_ptr<MappedFile> file_;
  ArrayLayout layout_;
  std::size_t row_bytes_;
  bool converted_;  ///< the file's bytes are no array here as they are
  std::int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<ElementIterator<Tensor>> iterate_rows(std::unique_ptr<MappedFile> file,
                                                      const ArrayLayout& layout) {
  return std::make_unique<ArrayRows>(std::move(file), layout);
}

}  // namespace cohort::detail

namespace cohort {
namespace {

constexpr std::string_view kFixedLengthName = "fixed-length record";

class FixedLengthRecordFormat final : public detail::FileFormat<Tensor> {
 public:
  explicit FixedLengthRecordFormat(const FixedLengthRecordOptions& options) : options_(options) {
    if (options.record_bytes < 1 || options.header_bytes < 0 || options.footer_bytes < 0) {
      throw InvalidArgument(
          "fixed-length records of {} bytes, after a header of {} and before a footer of {}, are not "
          "possible; records have at least 1 byte, and the others at least 0",
          options.record_bytes, options.header_bytes, options.footer_bytes);
    }
  }

  [[nodiscard]] std::string_view name() const override { return kFixedLengthName; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const override {
    auto file = std::make_unique<detail::MappedFile>(path, kFixedLengthName);
    const std::int64_t records = records_of(path, file->size());
    return detail::iterate_rows(std::move(file), {.offset = static_cast<std::uint64_t>(options_.header_bytes),
                                                  .rows = records,
                                                  .row = {options_.record_bytes},
                                                  .dtype = DType::kUInt8});
  }

  [[nodiscard]] Cardinality cardinality(const std::string& path) const override {
    return Cardinality::of(records_of(path, detail::InputFile(path, kFixedLengthName).size_of_content()));
  }

 private:
  [[nodiscard]] std::int64_t records_of(const std::string& path, std::uint64_t bytes) const {
    const auto around =
        static_cast<std::uint64_t>(options_.header_bytes) + static_cast<std::uint64_t>(options_.footer_bytes);
    const auto record = static_cast<std::uint64_t>(options_.record_bytes);
    if (bytes < around) {
      throw DataLoss(
          "{}: {} bytes are fewer than the header of {} and the footer of {}; the file is truncated, "
          "or the options do not describe its format",
          path, bytes, options_.header_bytes, options_.footer_bytes);
    }
    if ((bytes - around) % record != 0) {
      throw DataLoss(
          "{}: {} bytes after the header are {} records of {} bytes and {} bytes more; the file is "
          "truncated, or the options do not describe its format",
          path, bytes - around, (bytes - around) / record, record, (bytes - around) % record);
    }
    return static_cast<std::int64_t>((bytes - around) / record);
  }

  FixedLengthRecordOptions options_;
};

}  // namespace

Dataset<Tensor> fixed_length_record_dataset(std::vector<std::string> files,
                                            const FixedLengthRecordOptions& options) {
  return Dataset<Tensor>(
      detail::read_files<Tensor>(std::move(files), std::make_shared<const FixedLengthRecordFormat>(options)));
}

namespace {

constexpr std::uint64_t kMagicBytes = 4;  // two zeros, the type, the number of axes
constexpr std::uint64_t kExtentBytes = 4;

struct TypeCode {
  int code;
  DType dtype;
};
constexpr std::array kTypeCodes{TypeCode{0x08, DType::kUInt8},   TypeCode{0x09, DType::kInt8},
                                TypeCode{0x0b, DType::kInt16},   TypeCode{0x0c, DType::kInt32},
                                TypeCode{0x0d, DType::kFloat32}, TypeCode{0x0e, DType::kFloat64}};

DType parse_type_code(int code, const std::string& path) {
  for (const auto& [known, dtype] : kTypeCodes) {
    if (known == code) return dtype;
  }
  throw DataLoss("{}: byte 2 is {:#04x}, which is not an element type; the file is damaged, or not IDX", path,
                 code);
}

class IdxFormat final : public detail::ArrayFormat {
 public:
  IdxFormat() : ArrayFormat("IDX") {}

 private:
  [[nodiscard]] Header read_header(detail::MappedFile& file) const override {
    const std::string& path = file.path();
    const auto magic = file.bytes(0, std::min(file.size(), kMagicBytes));
    if (magic.size() < kMagicBytes || magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
      throw DataLoss("{}: not an IDX file, which begins with two zero bytes: {}", path,
                     detail::compression_hint(file, "give another file, or read this one in its own format"));
    }
    detail::ArrayHeader array{.dtype = parse_type_code(static_cast<int>(magic[2]), path),
                              .byte_order = std::endian::big,
                              .extents = {}};
    const auto rank = static_cast<std::uint64_t>(magic[3]);
    const std::uint64_t end = kMagicBytes + rank * kExtentBytes;
    if (file.size() < end) {
      throw DataLoss(
          "{}: the header has {} extents and ends at byte {}, but the file at byte {}; it is truncated", path,
          rank, end, file.size());
    }
    for (std::uint64_t at = kMagicBytes; at < end; at += kExtentBytes)
      array.extents.push_back(detail::load<std::uint32_t>(file.bytes(at, kExtentBytes), std::endian::big));
    return {std::move(array), end};
  }
};

}  // namespace

Dataset<Tensor> idx_dataset(std::vector<std::string> files) {
  return Dataset<Tensor>(detail::read_files<Tensor>(std::move(files), std::make_shared<const IdxFormat>()));
}

}  // namespace cohort
