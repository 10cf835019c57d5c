// How a manifest and an index are written: as JSON without spaces, and with members in alphabetical order, so
// that a reader finds the same text whatever it has done to them; but each value on a line of its own.
#include "manifest.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "input/files/crc32c.h"

#include "json_text.h"

namespace cohort::checkpoint {
namespace {

/// The members of an object, each on a line.
class Lines {
 public:
  explicit Lines(std::string& text) : text_(text) { text_ += '{'; }
  ~Lines() { text_ += '}'; }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

 private:
  std::string& text_;
  bool is_first_ = true;
};

/// Without the ends of lines, which are no part of any string.
std::string checksum_of_lines(std::string_view text) {
  std::uint32_t checksum = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    checksum = detail::crc32c(std::as_bytes(std::span(line)), checksum);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return hexadecimal(checksum);
}

std::string pieces_of(const ValueEntry& value) {
  std::string text;
  for (const Piece& piece : value.pieces) {
    fmt::format_to(std::back_inserter(text),
                   R"({}{{"crc32c":"{:08x}","file":{},"first_row":{},"rows":{},"tensor":{}}})",
                   text.empty() ? "" : ",", piece.checksum, checkpoint::quoted(piece.file), piece.first_row,
                   piece.rows, checkpoint::quoted(piece.tensor));
  }
  return text;
}

}  // namespace

std::string hexadecimal(std::uint32_t checksum) { return fmt::format("{:08x}", checksum); }

std::string to_json(const Manifest& manifest) {
  std::string content = R"({"files":)";
  {
    Lines files(content);
    for (const auto& [name, file] : manifest.files)
      files.add(R"({}:{{"crc32c":"{:08x}","size":{}}})", checkpoint::quoted(name), file.checksum, file.size);
  }
  if (!manifest.metrics.empty()) {
    // Numbers as the library writes them that reads them, for the checksum is taken of that.
    fmt::format_to(std::back_inserter(content), R"(,"metrics":{})", nlohmann::json(manifest.metrics).dump());
  }
  fmt::format_to(std::back_inserter(content), R"(,"step":{},"values":)", manifest.step);
  {
    Lines values(content);
    for (const auto& [name, value] : manifest.values)
      values.add(R"({}:{{"dtype":"{}","pieces":[{}],"shape":{}}})", checkpoint::quoted(name),
                 to_string(value.dtype), pieces_of(value), list_of_extents(value.shape));
  }
  fmt::format_to(std::back_inserter(content), R"(,"version":{},"workers":{}}})", kVersion, manifest.workers);
  return fmt::format("{{\"checkpoint\":{},\n\"crc32c\":\"{}\"}}\n", content, checksum_of_lines(content));
}

std::string safetensors_index(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  std::map<std::string_view, std::string_view> files;
  for (const auto& [name, value] : manifest.values) {
    bytes += value.shape.elements() * size_of(value.dtype);
    for (const Piece& piece : value.pieces) files.emplace(piece.tensor, piece.file);
  }
  std::string text = fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":)", bytes);
  {
    Lines places(text);
    for (const auto& [tensor, file] : files)
      places.add("{}:{}", checkpoint::quoted(tensor), checkpoint::quoted(file));
  }
  return text + "}\n";
}

}  // namespace cohort::checkpoint
