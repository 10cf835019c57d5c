#include <cohort/input/detail/element_bytes.h>

#include <algorithm>

#include <cohort/base/error.h>

namespace cohort::detail {
namespace {

[[noreturn]] void throw_other_elements() {
  throw DataLoss("it holds elements of another type than this dataset's");
}

}  // namespace

void ByteWriter::put_tensor(const Tensor& tensor) {
  const Tensor here = tensor.to(Device());
  put(static_cast<std::uint8_t>(here.dtype()));
  put(static_cast<std::uint8_t>(here.shape().rank()));
  put_bytes(std::as_bytes(here.shape().extents()));
  put_bytes(here.raw());
}

std::span<const std::byte> ByteReader::get_bytes(std::size_t count) {
  if (count > bytes_.size()) throw_other_elements();
  const auto taken = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return taken;
}

std::size_t ByteReader::get_count(std::size_t least_bytes) {
  const auto count = get<std::size_t>();
  if (count > bytes_.size() / least_bytes) throw_other_elements();
  return count;
}

bool ByteReader::get_bool() {
  const std::byte byte = get_bytes(1).front();
  if (byte > std::byte{1}) throw_other_elements();
  return byte == std::byte{1};
}

Tensor ByteReader::get_tensor() {
  const auto dtype = get<std::uint8_t>();
  const std::size_t rank = get<std::uint8_t>();
  if (dtype >= std::size(kAllDTypes) || rank > Shape::kLargestRank) throw_other_elements();
  std::vector<std::int64_t> extents(rank);
  const auto raw_extents = get_bytes(rank * sizeof(std::int64_t));
  if (rank > 0) std::memcpy(extents.data(), raw_extents.data(), raw_extents.size());
  std::size_t bytes = size_of(static_cast<DType>(dtype));
  for (const std::int64_t extent : extents) {
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(extent), &bytes)) {
      throw_other_elements();
    }
  }
  const auto raw = get_bytes(bytes);
  Tensor tensor = Tensor::uninitialized(Shape(extents), static_cast<DType>(dtype));
  if (!raw.empty()) std::memcpy(tensor.data(), raw.data(), raw.size());
  const bool is_valid = tensor.dtype() != DType::kBool ||
                        std::ranges::all_of(raw, [](std::byte byte) { return byte <= std::byte{1}; });
  if (!is_valid) throw_other_elements();
  return tensor;
}

void ByteReader::require_end() const {
  if (!bytes_.empty()) throw_other_elements();
}

}  // namespace cohort::detail
