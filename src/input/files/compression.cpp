#include "compression.h"

#include <algorithm>
#include <array>

namespace cohort::detail {
namespace {

struct Compression {
  std::string_view magic;
  std::string_view hint;
};
constexpr std::array kCompressions{
    Compression{"\x1f\x8b", "it is compressed with gzip, so unpack it with gunzip"},
    Compression{"\x28\xb5\x2f\xfd", "it is compressed with zstd, so unpack it with unzstd"},
    Compression{"BZh", "it is compressed with bzip2, so unpack it with bunzip2"},
    Compression{"\xfd"
                "7zXZ",
                "it is compressed with xz, so unpack it with unxz"},
};

}  // namespace

std::string_view compression_hint(MappedFile& file, std::string_view otherwise) {
  for (const auto& [magic, hint] : kCompressions) {
    if (file.size() < magic.size()) continue;
    const auto start = file.bytes(0, magic.size());
    if (std::ranges::equal(start, std::as_bytes(std::span(magic)))) return hint;
  }
  return otherwise;
}

}  // namespace cohort::detail
