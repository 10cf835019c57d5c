#include <cohort/input/files/idx.h>

#include <algorithm>
#include <array>
#include <utility>

#include "array_format.h"
#include "byte_order.h"
#include "compression.h"

namespace cohort {
namespace {

using detail::MappedFile;

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
  [[nodiscard]] Header read_header(MappedFile& file) const override {
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
