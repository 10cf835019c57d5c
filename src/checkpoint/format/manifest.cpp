#include "manifest.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/crc32c.h"
#include "base/json.h"
#include "file.h"

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

  /// Its value follows.
  void begin(std::string_view name) {
    text_ += is_first_ ? "\n" : ",\n";
    is_first_ = false;
    append_quoted(text_, name, BadUtf8::kRefuse);
    text_ += ':';
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

void append_checksum(std::string& out, std::uint32_t checksum) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += R"({"crc32c":")";
  for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[checksum >> shift & 15U];
}

void append_value(std::string& out, const ValueEntry& value) {
  out += R"({"dtype":")";
  out += to_string(value.dtype);
  out += R"(","pieces":[)";
  for (const Piece& piece : value.pieces) {
    if (&piece != value.pieces.data()) out += ',';
    append_checksum(out, piece.checksum);
    out += R"(","file":)";
    append_quoted(out, piece.file, BadUtf8::kRefuse);
    out += R"(,"first_row":)";
    append_number(out, piece.first_row);
    out += R"(,"rows":)";
    append_number(out, piece.rows);
    out += R"(,"tensor":)";
    append_quoted(out, piece.tensor, BadUtf8::kRefuse);
    out += '}';
  }
  out += R"(],"shape":)";
  append_list(out, value.shape.extents());
  out += '}';
}

}  // namespace

std::string hexadecimal(std::uint32_t checksum) { return fmt::format("{:08x}", checksum); }

std::string to_json(const Manifest& manifest) {
  constexpr std::string_view kOpening = R"({"checkpoint":)";
  std::string text(kOpening);
  text += R"({"files":)";
  {
    Lines files(text);
    for (const auto& [name, file] : manifest.files) {
      files.begin(name);
      append_checksum(text, file.checksum);
      fmt::format_to(std::back_inserter(text), R"(","size":{}}})", file.size);
    }
  }
  if (!manifest.metrics.empty()) {
    // Numbers as the library writes them that reads them: earlier versions take the checksum of that.
    fmt::format_to(std::back_inserter(text), R"(,"metrics":{})", nlohmann::json(manifest.metrics).dump());
  }
  fmt::format_to(std::back_inserter(text), R"(,"step":{},"values":)", manifest.step);
  {
    Lines values(text);
    for (const auto& [name, value] : manifest.values) {
      values.begin(name);
      append_value(text, value);
    }
  }
  fmt::format_to(std::back_inserter(text), R"(,"version":{},"workers":{}}})", kVersion, manifest.workers);
  const std::string checksum = checksum_of_lines(std::string_view(text).substr(kOpening.size()));
  fmt::format_to(std::back_inserter(text), ",\n\"crc32c\":\"{}\"}}\n", checksum);
  return text;
}

std::string safetensors_index(std::uint64_t bytes,
                              const std::map<std::string_view, std::string_view>& files) {
  std::string text = fmt::format(R"({{"metadata":{{"total_size":{}}},"weight_map":)", bytes);
  {
    Lines places(text);
    for (const auto& [tensor, file] : files) {
      places.begin(tensor);
      append_quoted(text, file, BadUtf8::kRefuse);
    }
  }
  return text + "}\n";
}

std::string safetensors_index(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  std::map<std::string_view, std::string_view> files;
  for (const auto& [name, value] : manifest.values) {
    bytes += value.shape.elements() * size_of(value.dtype);
    // At the end, as the tensors of a value most often follow those of the one before.
    for (const Piece& piece : value.pieces) files.emplace_hint(files.end(), piece.tensor, piece.file);
  }
  return safetensors_index(bytes, files);
}

namespace {

using Json = nlohmann::json;
using Kind = JsonValue::Kind;

// How a manifest is read: whatever it says may be wrong.

/// What a value of the manifest is called in messages: made into text when there is one.
struct Subject {
  std::string_view path;
  std::string_view kind = {};  ///< `value` or `file`; empty: the manifest itself
  std::string_view name = {};
};

std::string in_words(const Subject& subject) {
  return subject.kind.empty() ? fmt::format("'{}'", subject.path)
                              : fmt::format("'{}': {} '{}'", subject.path, subject.kind, subject.name);
}

/// Reads members of objects, and says which one is wrong.
class Members {
 public:
  Members(const JsonValue& object, const Subject& subject) : object_(object), subject_(subject) {
    if (!object.is(Kind::kObject)) fail(" is no object");
  }

  [[nodiscard]] bool has(const char* key) const { return object_.find(key) != nullptr; }

  [[nodiscard]] const JsonValue& at(const char* key) const {
    const JsonValue* const found = object_.find(key);
    if (found == nullptr) fail(" has no '{}'", key);
    return *found;
  }

  /// Its value, an object as well.
  [[nodiscard]] const JsonValue& object(const char* key) const {
    const JsonValue& value = at(key);
    if (!value.is(Kind::kObject)) fail(": its {} are no object", key);
    return value;
  }

  [[nodiscard]] std::int64_t count(const char* key) const {
    const auto number = at(key).number<std::int64_t>();
    if (!number || *number < 0) fail(": its '{}' is no number from 0", key);
    return *number;
  }

  [[nodiscard]] std::string_view text(const char* key) const {
    const JsonValue& value = at(key);
    if (!value.is(Kind::kText)) fail(": its '{}' is no text", key);
    return value.text();
  }

  [[nodiscard]] std::uint32_t checksum(const char* key) const {
    const std::string_view digits = text(key);
    std::uint32_t value = 0;
    const char* last = digits.data() + digits.size();
    if (digits.size() != 8 || std::from_chars(digits.data(), last, value, 16).ptr != last)
      fail(": its '{}' is no checksum of 8 digits", key);
    return value;
  }

  /// Throws DataLoss.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw DataLoss("{}{}", in_words(subject_), fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const JsonValue& object_;
  const Subject& subject_;
};

/// The name of a file in the folder itself: a manifest must not lead anywhere else.
void require_plain_name(std::string_view name, const Members& members) {
  if (!is_plain_name(name)) members.fail(": '{}' is no name of a file in this folder", name);
}

Shape shape_in(const Members& members) {
  std::vector<std::int64_t> extents;
  extents.reserve(Shape::kLargestRank);
  const JsonValue& list = members.at("shape");
  if (!list.is(Kind::kList)) members.fail(": its shape is no list");
  for (const JsonValue& each : list) {
    const auto extent = each.number<std::int64_t>();
    if (!extent) members.fail(": its shape is no list of numbers");
    extents.push_back(*extent);
  }
  try {
    return Shape(extents);
  } catch (const InvalidArgument& error) {
    members.fail(": {}", error.what());
  }
}

DType dtype_in(const Members& members) {
  try {
    return parse_dtype(members.text("dtype"));
  } catch (const InvalidArgument& error) {
    members.fail(": {}", error.what());
  }
}

ValueEntry value_in(const JsonValue& json, const Subject& subject, const Manifest& manifest) {
  const Members members(json, subject);
  ValueEntry value{dtype_in(members), shape_in(members), {}};
  const JsonValue& pieces = members.at("pieces");
  if (!pieces.is(Kind::kList)) members.fail(": its pieces are no list");
  std::int64_t next_row = 0;
  for (const JsonValue& each : pieces) {
    const Members piece(each, subject);
    const std::string_view file = piece.text("file");
    if (!manifest.files.contains(file)) {
      require_plain_name(file, members);
      members.fail(": file '{}' is not listed", file);
    }
    value.pieces.push_back({std::string(file), std::string(piece.text("tensor")), piece.count("first_row"),
                            piece.count("rows"), piece.checksum("crc32c")});
    const Piece& last = value.pieces.back();
    if (last.first_row != next_row || last.rows > rows_of(value.shape) - next_row)
      members.fail(": its pieces do not follow each other");
    next_row += last.rows;
  }
  if (value.pieces.empty() || next_row != rows_of(value.shape))
    members.fail(": its pieces have {} rows, and it has {}", next_row, rows_of(value.shape));
  return value;
}

std::map<std::string, double> metrics_in(const Members& content) {
  std::map<std::string, double> metrics;
  for (const JsonValue& name : content.object("metrics")) {
    const auto number = name.value().number<double>();
    if (!number) content.fail(": its metric '{}' is no number", name.text());
    metrics.emplace(name.text(), *number);
  }
  return metrics;
}

/// Each tensor is one piece: values are not larger than their files, and memory for them can be had.
void require_tensors_once(const Manifest& manifest, const std::string& path) {
  using Tensor = std::pair<std::string_view, std::string_view>;  // its file and its name
  const auto hash = [](const Tensor& tensor) {
    return 31 * std::hash<std::string_view>()(tensor.first) + std::hash<std::string_view>()(tensor.second);
  };
  std::unordered_set<Tensor, decltype(hash)> tensors(manifest.values.size(), hash);
  for (const auto& [name, value] : manifest.values) {
    for (const Piece& piece : value.pieces)
      if (!tensors.emplace(piece.file, piece.tensor).second)
        throw DataLoss("'{}': value '{}': tensor '{}' of '{}' is used twice", path, name, piece.tensor,
                       piece.file);
  }
}

/// The checksum is of the text as Cohort writes it. Another program may have written the same file again, in
/// another order or with other spaces and escapes.
bool is_checksum_of(std::string_view content, std::string_view checksum) {
  if (checksum_of_lines(content) == checksum) return true;
  const std::string text = Json::parse(content).dump();
  return hexadecimal(detail::crc32c(std::as_bytes(std::span(text)))) == checksum;
}

}  // namespace

std::int64_t rows_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[0]; }

Shape piece_shape(const Shape& shape, std::int64_t rows) {
  return shape.rank() == 0 ? shape : shape.with(0, rows);
}

Manifest parse_manifest(const std::string& text, const std::string& path) {
  const JsonDocument document(text, fmt::format("'{}'", path));
  const Subject subject{path};
  const Members whole(document.root(), subject);
  const JsonValue& checked = whole.at("checkpoint");
  const Members content(checked, subject);
  const std::int64_t version = content.count("version");
  if (version > kVersion) {
    throw Unimplemented(
        "'{}' has version {} of the format, and this library reads versions up to {}: use a newer one", path,
        version, kVersion);
  }
  if (version < 1) throw DataLoss("'{}' has version {} of the format, which there never was", path, version);
  if (!is_checksum_of(checked.text(), whole.text("crc32c")))
    throw DataLoss("'{}' is damaged: its checksum is wrong", path);

  Manifest manifest;
  manifest.step = content.count("step");
  const std::int64_t workers = content.count("workers");
  if (workers < 1 || workers > std::numeric_limits<int>::max())
    throw DataLoss("'{}': {} workers cannot have written it", path, workers);
  manifest.workers = static_cast<int>(workers);
  if (content.has("metrics")) manifest.metrics = metrics_in(content);
  for (const JsonValue& name : content.object("files")) {
    const Subject file{path, "file", name.text()};
    const Members members(name.value(), file);
    require_plain_name(name.text(), members);
    manifest.files.emplace(name.text(), FileEntry{static_cast<std::uint64_t>(members.count("size")),
                                                  members.checksum("crc32c")});
  }
  for (const JsonValue& name : content.object("values"))
    manifest.values.emplace_hint(manifest.values.end(), name.text(),
                                 value_in(name.value(), {path, "value", name.text()}, manifest));
  require_tensors_once(manifest, path);
  return manifest;
}

}  // namespace cohort::checkpoint
