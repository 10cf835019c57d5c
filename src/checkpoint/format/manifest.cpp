#include "manifest.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/crc32c.h"
#include "json.h"

namespace cohort::checkpoint {
namespace {

// How a manifest and an index are written: as JSON without spaces, and with members in alphabetical order, so
// that a reader finds the same text whatever it has done to them; but each value on a line of its own.

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

namespace {

using Json = nlohmann::json;

std::string checksum_of_text(const std::string& text) {
  return hexadecimal(detail::crc32c(std::as_bytes(std::span(text))));
}

// How a manifest is read: whatever it says may be wrong.

/// Reads members of objects, and says which one is wrong.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw DataLoss("{} is no object", where_);
  }

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  [[nodiscard]] const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw DataLoss("{} has no '{}'", where_, key);
    return *found;
  }

  [[nodiscard]] std::int64_t count(const char* key) const {
    const Json& value = at(key);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMost)
      throw DataLoss("{}: its '{}' is no number from 0", where_, key);
    return value.get<std::int64_t>();
  }

  [[nodiscard]] std::string text(const char* key) const {
    const Json& value = at(key);
    if (!value.is_string()) throw DataLoss("{}: its '{}' is no text", where_, key);
    return value.get<std::string>();
  }

  [[nodiscard]] std::uint32_t checksum(const char* key) const {
    const std::string digits = text(key);
    std::uint32_t value = 0;
    const char* last = digits.data() + digits.size();
    if (digits.size() != 8 || std::from_chars(digits.data(), last, value, 16).ptr != last)
      throw DataLoss("{}: its '{}' is no checksum of 8 digits", where_, key);
    return value;
  }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

/// The name of a file in the folder itself: a manifest must not lead anywhere else.
std::string plain_name(std::string name, const std::string& where) {
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
    throw DataLoss("{}: '{}' is no name of a file in this folder", where, name);
  return name;
}

Shape shape_in(const Members& members) {
  std::vector<std::int64_t> extents;
  const Json& list = members.at("shape");
  if (!list.is_array()) throw DataLoss("{}: its shape is no list", members.where());
  for (const Json& extent : list) {
    if (!extent.is_number_integer()) throw DataLoss("{}: its shape is no list of numbers", members.where());
    extents.push_back(extent.get<std::int64_t>());
  }
  try {
    return Shape(extents);
  } catch (const InvalidArgument& error) {
    throw DataLoss("{}: {}", members.where(), error.what());
  }
}

DType dtype_in(const Members& members) {
  try {
    return parse_dtype(members.text("dtype"));
  } catch (const InvalidArgument& error) {
    throw DataLoss("{}: {}", members.where(), error.what());
  }
}

ValueEntry value_in(const Json& json, const std::string& where, const Manifest& manifest) {
  const Members members(json, where);
  ValueEntry value{dtype_in(members), shape_in(members), {}};
  const Json& pieces = members.at("pieces");
  if (!pieces.is_array()) throw DataLoss("{}: its pieces are no list", where);
  std::int64_t next_row = 0;
  for (const Json& each : pieces) {
    const Members piece(each, where);
    value.pieces.push_back({plain_name(piece.text("file"), where), piece.text("tensor"),
                            piece.count("first_row"), piece.count("rows"), piece.checksum("crc32c")});
    const Piece& last = value.pieces.back();
    if (!manifest.files.contains(last.file)) throw DataLoss("{}: file '{}' is not listed", where, last.file);
    if (last.first_row != next_row || last.rows > rows_of(value.shape) - next_row)
      throw DataLoss("{}: its pieces do not follow each other", where);
    next_row += last.rows;
  }
  if (value.pieces.empty() || next_row != rows_of(value.shape)) {
    throw DataLoss("{}: its pieces have {} rows, and it has {}", where, next_row, rows_of(value.shape));
  }
  return value;
}

std::map<std::string, double> metrics_in(const Members& content) {
  const Json& json = content.at("metrics");
  if (!json.is_object()) throw DataLoss("{}: its metrics are no object", content.where());
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number()) throw DataLoss("{}: its metric '{}' is no number", content.where(), name);
    metrics[name] = value.get<double>();
  }
  return metrics;
}

/// Each tensor is one piece: values are not larger than their files, and memory for them can be had.
void require_tensors_once(const Manifest& manifest, const std::string& path) {
  std::set<std::pair<std::string_view, std::string_view>> tensors;
  for (const auto& [name, value] : manifest.values) {
    for (const Piece& piece : value.pieces)
      if (!tensors.emplace(piece.file, piece.tensor).second)
        throw DataLoss("'{}': value '{}': tensor '{}' of '{}' is used twice", path, name, piece.tensor,
                       piece.file);
  }
}

}  // namespace

std::int64_t rows_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

Shape piece_shape(const Shape& shape, std::int64_t rows) {
  return shape.rank() == 0 ? shape : shape.with(0, rows);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const auto json = parse_json<Json>(text, fmt::format("'{}'", path));
  const Members whole(json, fmt::format("'{}'", path));
  const Members content(whole.at("checkpoint"), fmt::format("'{}'", path));
  const std::int64_t version = content.count("version");
  if (version > kVersion) {
    throw Unimplemented(
        "'{}' has version {} of the format, and this library reads versions up to {}: use a newer one", path,
        version, kVersion);
  }
  if (version < 1) throw DataLoss("'{}' has version {} of the format, which there never was", path, version);
  if (checksum_of_text(whole.at("checkpoint").dump()) != whole.text("crc32c"))
    throw DataLoss("'{}' is damaged: its checksum is wrong", path);

  Manifest manifest;
  manifest.step = content.count("step");
  const std::int64_t workers = content.count("workers");
  if (workers < 1 || workers > std::numeric_limits<int>::max())
    throw DataLoss("'{}': {} workers cannot have written it", path, workers);
  manifest.workers = static_cast<int>(workers);
  if (content.has("metrics")) manifest.metrics = metrics_in(content);
  for (const auto& [name, file] : content.at("files").items()) {
    const Members members(file, fmt::format("'{}': file '{}'", path, name));
    manifest.files[plain_name(name, members.where())] = {static_cast<std::uint64_t>(members.count("size")),
                                                         members.checksum("crc32c")};
  }
  for (const auto& [name, value] : content.at("values").items())
    manifest.values[name] = value_in(value, fmt::format("'{}': value '{}'", path, name), manifest);
  require_tensors_once(manifest, path);
  return manifest;
}

}  // namespace cohort::checkpoint
