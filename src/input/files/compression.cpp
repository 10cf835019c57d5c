#include "compression.h"

#include <algorithm>
#include <array>

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

}  // namespace cohort::detail
