#include <cohort/input/files/idx.h>

#include <array>
#include <utility>

#include <cohort/input/detail/file_source.h>

#include "array_header.h"
#include "array_rows.h"
#include "byte_order.h"
#include "compression.h"

namespace cohort {
namespace {

using detail::MappedFile;

constexpr std::string_view kName = "IDX";
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
  throw DataLoss("{}: byte 2 is {:#04x}, which is no type of elements; the file is damaged, or no IDX file",
                 path, code);
}

detail::ArrayLayout read_layout(MappedFile& file) {
  const std::string& path = file.path();
  const auto magic = file.bytes(0, std::min(file.size(), kMagicBytes));
  if (magic.size() < kMagicBytes || magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    throw DataLoss("{}: not an IDX file, which begins with two zero bytes: {}", path,
                   detail::compression_hint(file, "give another file, or read this one in its own format"));
  }
  detail::ArrayHeader header{.dtype = parse_type_code(static_cast<int>(magic[2]), path),
                             .byte_order = std::endian::big,
                             .extents = {}};
  const auto rank = static_cast<std::uint64_t>(magic[3]);
  const std::uint64_t end = kMagicBytes + rank * kExtentBytes;
  if (file.size() < end) {
    throw DataLoss(
        "{}: the header has {} extents and ends at byte {}, but the file at byte {}; it is truncated", path,
        rank, end, file.size());
  }
  for (std::uint64_t at = kMagicBytes; at < end; at += kExtentBytes) {
    header.extents.push_back(detail::load<std::uint32_t>(file.bytes(at, kExtentBytes), std::endian::big));
  }
  const Shape shape = detail::checked_shape(header, file.size() - end, path);
  return {.offset = end,
          .rows = shape[0],
          .row = shape.row(),
          .dtype = header.dtype,
          .byte_order = header.byte_order};
}

class IdxFormat final : public detail::FileFormat<Tensor> {
 public:
  [[nodiscard]] std::string_view name() const override { return kName; }

  [[nodiscard]] std::unique_ptr<ElementIterator<Tensor>> open(const std::string& path) const override {
    auto file = std::make_unique<MappedFile>(path, kName);
    const detail::ArrayLayout layout = read_layout(*file);
    return detail::iterate_rows(std::move(file), layout);
  }

  [[nodiscard]] Cardinality cardinality(const std::string& path) const override {
    MappedFile file(path, kName);
    return Cardinality::of(read_layout(file).rows);
  }
};

}  // namespace

Dataset<Tensor> idx_dataset(std::vector<std::string> files) {
  return Dataset<Tensor>(detail::read_files<Tensor>(std::move(files), std::make_shared<const IdxFormat>()));
}

}  // namespace cohort
