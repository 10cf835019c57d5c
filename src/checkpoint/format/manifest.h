// What a checkpoint's folder holds: each value with its pieces, and each file with its size and checksum. It
// says nothing of the strategy or the number of workers that a value needs: any can restore it.
//
//     {"checkpoint": {"version": 1, "step": 7, "workers": 2, "values": {...}, "files": {...}}, "crc32c":
//     "..."}
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/device/dtype.h>
#include <cohort/device/shape.h>

namespace cohort::checkpoint {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kIndexName = "model.safetensors.index.json";

/// Of the format.
inline constexpr int kVersion = 1;

/// Rows of a value, as a tensor of a safetensors file. A scalar counts as one row.
struct Piece {
  std::string file = {};
  std::string tensor = {};  ///< its name there
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::uint32_t checksum = 0;  ///< CRC-32C of its elements
};

struct ValueEntry {
  DType dtype = DType::kFloat32;
  Shape shape = {};
  std::vector<Piece> pieces = {};  ///< in the order of their rows, which are all rows
};

struct FileEntry {
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;  ///< CRC-32C
};

struct Manifest {
  std::int64_t step = 0;
  int workers = 1;                             ///< that wrote it
  std::map<std::string, double> metrics = {};  ///< by which the program judges it; finite numbers
  std::map<std::string, ValueEntry> values = {};
  std::map<std::string, FileEntry, std::less<>> files = {};
};

/// The number of rows that pieces divide.
[[nodiscard]] std::int64_t rows_of(const Shape& shape);

/// The shape of so many rows.
[[nodiscard]] Shape piece_shape(const Shape& shape, std::int64_t rows);

[[nodiscard]] std::string to_json(const Manifest& manifest);

/// @throws DataLoss that begins with `path` and says what is wrong with the text; Unimplemented for a version
/// of the format that is newer than this library.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

/// The text by which readers of safetensors find the tensors of several files: the bytes of all of them, and
/// the file of each.
[[nodiscard]] std::string safetensors_index(std::uint64_t bytes,
                                            const std::map<std::string_view, std::string_view>& files);
[[nodiscard]] std::string safetensors_index(const Manifest& manifest);

/// A checksum in manifests and messages.
[[nodiscard]] std::string hexadecimal(std::uint32_t checksum);

}  // namespace cohort::checkpoint
