#include "foreign_data.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort::detail {
namespace {

struct Compression {
  std::string_view magic;  ///< how the file begins; `?` stands for any byte
  std::string_view hint;
};
constexpr std::array kCompressions{
    Compression{"\x1f\x8b", "it is compressed with gzip, so unpack it with gunzip"},
    Compression{"\x28\xb5\x2f\xfd", "it is compressed with zstd, so unpack it with unzstd"},
    Compression{"BZh?1AY&SY", "it is compressed with bzip2, so unpack it with bunzip2"},
    Compression{"\xfd"
                "7zXZ",
                "it is compressed with xz, so unpack it with unxz"},
};

}  // namespace

void swap_bytes(const Tensor& tensor) {
  const std::span<std::byte> bytes = tensor.raw();
  const std::size_t size = size_of(tensor.dtype());
  for (std::size_t at = 0; at < bytes.size(); at += size)
    std::reverse(bytes.data() + at, bytes.data() + at + size);
}

void require_valid_elements(const Tensor& tensor, const std::string& path, std::uint64_t offset) {
  if (tensor.dtype() != DType::kBool) return;
  const std::span<const std::byte> bytes = tensor.raw();
  const auto wrong = std::ranges::find_if(bytes, [](std::byte byte) { return byte > std::byte{1}; });
  if (wrong == bytes.end()) return;
  throw DataLoss("{}: byte {} is {}, and a bool is 0 or 1; read the array as uint8, or write it again", path,
                 offset + static_cast<std::uint64_t>(wrong - bytes.begin()), static_cast<int>(*wrong));
}

std::string_view compression_hint(std::span<const std::byte> start, std::string_view otherwise) {
  for (const auto& [magic, hint] : kCompressions) {
    if (start.size() < magic.size()) continue;
    const auto is_right = [](std::byte byte, char wanted) {
      return wanted == '?' || byte == static_cast<std::byte>(wanted);
    };
    if (std::ranges::equal(start.first(magic.size()), magic, is_right)) return hint;
  }
  return otherwise;
}

std::string_view compression_hint(MappedFile& file, std::string_view otherwise) {
  constexpr std::uint64_t kLongestMagic = 10;
  return compression_hint(file.bytes(0, std::min(file.size(), kLongestMagic)), otherwise);
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result;
  for (const char character : text.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(character);
    if (code < 0x20 || code == 0x7f)
      fmt::format_to(std::back_inserter(result), "\\x{:02x}", code);
    else
      result += character;
  }
  if (text.size() > kLongest) result += "...";
  return result;
}

}  // namespace cohort::detail
