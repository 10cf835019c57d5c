// The same bytes as the file of a cache, which ends at the first wrong checksum, and as one of its records.
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <cohort/input/detail/cache_file.h>
#include <cohort/value/detail/bytes.h>

#include "fuzz_one.h"

namespace cohort::fuzz {
namespace {

using Record =
    std::tuple<Tensor, std::vector<std::string>, std::optional<float>, std::map<std::string, bool>>;

/// A file that is in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("fuzzed", MFD_CLOEXEC)) {
    if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("no memory for a file");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

void fuzz_one(std::string_view input) {
  parse_or_refuse(
      [&] {
        const MemoryFile file(input);
        detail::CacheFileReader reader(file.path());
        while (!reader.at_end()) static_cast<void>(reader.next());
      },
      {ErrorCode::kDataLoss});
  parse_or_refuse(
      [&] {
        detail::ByteReader reader(std::as_bytes(std::span(input)), "a record");
        const auto record = detail::read_value<Record>(reader);
        // What was read is a value like any other.
        detail::ByteWriter writer;
        detail::write_value(writer, record);
        if (writer.bytes().size() > input.size()) throw std::logic_error("more was read than was there");
      },
      {ErrorCode::kDataLoss});
}

}  // namespace cohort::fuzz
