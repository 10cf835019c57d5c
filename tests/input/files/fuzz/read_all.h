// A fuzzer's input as a file, and a dataset of it read to its end.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>

#include <cohort/input/dataset.h>

#include "fuzz_one.h"

namespace cohort::fuzz {

/// A file that is in memory only.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes)
      : descriptor_(::memfd_create("fuzzed", MFD_CLOEXEC)),
        path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    if (::write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("no memory for a file");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// Reads every byte of an element, so that a sanitizer sees it.
inline std::size_t weigh(double number) { return number > 0 ? 1 : 0; }
inline std::size_t weigh(const std::string& text) {
  std::size_t sum = 0;
  for (const char character : text) sum += static_cast<unsigned char>(character);
  return sum;
}
inline std::size_t weigh(const Tensor& tensor) {
  std::size_t sum = 0;
  for (const std::byte byte : tensor.raw()) sum += static_cast<std::size_t>(byte);
  return sum;
}
template <class T>
std::size_t weigh(const std::optional<T>& value) {
  return value ? weigh(*value) : 0;
}
template <class... Parts>
std::size_t weigh(const std::tuple<Parts...>& row) {
  return std::apply([](const auto&... parts) { return (std::size_t{0} + ... + weigh(parts)); }, row);
}

/// Reads the dataset over `file` to its end, past errors that name the file; then skips through it.
template <class Element>
void read_all(const Dataset<Element>& dataset, const MemoryFile& file) {
  constexpr int kMostErrors = 100;
  const auto refusals = {ErrorCode::kInvalidArgument, ErrorCode::kDataLoss, ErrorCode::kUnimplemented};
  static_cast<void>(dataset.cardinality());
  const auto elements = dataset.node()->iterate(detail::Pass(0));
  std::size_t sum = 0;
  bool more = true;
  for (int errors = 0; more && errors < kMostErrors; ++errors) {
    parse_or_refuse(
        [&] {
          try {
            while (const std::optional<Element> element = elements->next()) sum += weigh(*element);
            more = false;
          } catch (const Error& error) {
            if (std::string_view(error.what()).find(file.path()) == std::string_view::npos)
              throw std::logic_error(std::string("it does not name the file: ") + error.what());
            throw;
          }
        },
        refusals);
  }
  [[maybe_unused]] const volatile std::size_t used = sum;
  parse_or_refuse(
      [&] {
        const auto skipping = dataset.node()->iterate(detail::Pass(0));
        while (skipping->skip(3) == 3) continue;
      },
      refusals);
}

}  // namespace cohort::fuzz
