#include "piece_reader.h"

#include <span>

#include <cohort/base/error.h>

#include "input/files/crc32c.h"

namespace cohort::checkpoint {

namespace {

void compare_checksum(std::uint32_t checksum, const std::string& name, const Piece& piece,
                      const InputFile& file) {
  if (checksum == piece.checksum) return;
  throw DataLoss("value '{}' is damaged: the checksum of its rows {} to {} in '{}' is wrong", name,
                 piece.first_row, piece.first_row + piece.rows - 1, file.path());
}

}  // namespace

void PieceReader::open(const std::string& name, const ValueEntry& value) {
  for (const Piece& piece : value.pieces) static_cast<void>(locate(name, value, piece));
}

Tensor PieceReader::read(const std::string& name, const ValueEntry& value) {
  open(name, value);
  Tensor whole = Tensor::uninitialized(value.shape, value.dtype);
  std::span<std::byte> rest = whole.raw();
  for (const Piece& piece : value.pieces) {
    const auto [file, place] = locate(name, value, piece);
    const auto bytes = rest.first(place.bytes());
    file->read(place.begin, bytes);
    compare_checksum(detail::crc32c(bytes), name, piece, *file);
    rest = rest.subspan(bytes.size());
  }
  return whole;
}

void PieceReader::check(const std::string& name, const ValueEntry& value, const Piece& piece) {
  const auto [file, place] = locate(name, value, piece);
  compare_checksum(checksum_of(*file, place.begin, place.bytes()), name, piece, *file);
}

std::pair<const InputFile*, TensorPlace> PieceReader::locate(const std::string& name, const ValueEntry& value,
                                                             const Piece& piece) {
  auto& open = files_[piece.file];
  if (open == nullptr) open = std::make_unique<OpenFile>(folder_ + "/" + piece.file);
  const auto found = open->header.tensors.find(piece.tensor);
  if (found == open->header.tensors.end())
    throw DataLoss("value '{}': '{}' has no tensor '{}'", name, open->file.path(), piece.tensor);
  const TensorPlace& place = found->second;
  if (place.dtype != value.dtype || place.shape != piece_shape(value.shape, piece.rows)) {
    throw DataLoss("value '{}': tensor '{}' in '{}' is {}{}, and not as the manifest says", name,
                   piece.tensor, open->file.path(), to_string(place.dtype), to_string(place.shape));
  }
  return {&open->file, place};
}

}  // namespace cohort::checkpoint
