#include "piece_reader.h"

#include <vector>

#include <cohort/base/error.h>

#include "input/files/crc32c.h"

namespace cohort::checkpoint {

void PieceReader::open(const std::string& name, const ValueEntry& value) {
  for (const Piece& piece : value.pieces) static_cast<void>(locate(name, value, piece));
}

Tensor PieceReader::read(const std::string& name, const ValueEntry& value) {
  open(name, value);
  const Tensor whole = Tensor::uninitialized(value.shape, value.dtype);
  std::span<std::byte> rest = whole.raw();
  for (const Piece& piece : value.pieces) {
    const std::size_t bytes = piece_shape(value.shape, piece.rows).elements() * size_of(value.dtype);
    read_piece(name, value, piece, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  return whole;
}

void PieceReader::check(const std::string& name, const ValueEntry& value, const Piece& piece) {
  std::vector<std::byte> bytes(locate(name, value, piece).second.bytes());
  read_piece(name, value, piece, bytes);
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

void PieceReader::read_piece(const std::string& name, const ValueEntry& value, const Piece& piece,
                             std::span<std::byte> bytes) {
  const auto [file, place] = locate(name, value, piece);
  file->read(place.begin, bytes);
  if (detail::crc32c(bytes) != piece.checksum) {
    throw DataLoss("value '{}' is damaged: the checksum of its rows {} to {} in '{}' is wrong", name,
                   piece.first_row, piece.first_row + piece.rows - 1, file->path());
  }
}

}  // namespace cohort::checkpoint
