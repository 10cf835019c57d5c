#include "npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <cohort/base/error.h>

#include "byte_order.h"
#include "compression.h"
#include "excerpt.h"

namespace cohort::detail {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::size_t kShortPreambleBytes = 10;  // of version 1, whose length has two bytes

struct TypeName {
  std::string_view name;  ///< kind and bytes per element
  DType dtype;
};
constexpr std::array kTypeNames{
    TypeName{"b1", DType::kBool},    TypeName{"i1", DType::kInt8},    TypeName{"i2", DType::kInt16},
    TypeName{"i4", DType::kInt32},   TypeName{"i8", DType::kInt64},   TypeName{"u1", DType::kUInt8},
    TypeName{"u2", DType::kUInt16},  TypeName{"u4", DType::kUInt32},  TypeName{"u8", DType::kUInt64},
    TypeName{"f2", DType::kFloat16}, TypeName{"f4", DType::kFloat32}, TypeName{"f8", DType::kFloat64},
};

/// Reads the dictionary: literals of Python, as numpy.save writes them.
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  [[nodiscard]] ArrayHeader read() {
    expect('{');
    bool has_type = false;
    bool has_order = false;
    bool has_shape = false;
    while (!accept('}')) {
      const std::string_view key = read_string();
      expect(':');
      if (key == "descr" && !std::exchange(has_type, true))
        read_type();
      else if (key == "fortran_order" && !std::exchange(has_order, true))
        fortran_order_ = read_bool();
      else if (key == "shape" && !std::exchange(has_shape, true))
        read_shape();
      else
        fail(fmt::format("it has the key '{}'", excerpt(key)));
      if (accept('}')) break;
      expect(',');
    }
    skip_spaces();
    if (!text_.empty()) fail("something follows the dictionary");
    if (!has_type || !has_order || !has_shape) fail("one of descr, fortran_order and shape is missing");
    if (fortran_order_ && depends_on_order()) {
      throw Unimplemented(
          "{}: the array is in Fortran order, whose rows do not lie together; "
          "save it with numpy.ascontiguousarray",
          place_);
    }
    return header_;
  }

 private:
  /// Otherwise the elements lie in the same places in both orders, and some programs call that Fortran's.
  [[nodiscard]] bool depends_on_order() const {
    const bool is_empty = std::ranges::find(header_.extents, 0) != header_.extents.end();
    return !is_empty && std::ranges::count_if(header_.extents, [](auto extent) { return extent > 1; }) > 1;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataLoss("{}: the header of the array cannot be understood: {}; write the file again", place_,
                   what);
  }

  void skip_spaces() {
    const std::size_t used = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(std::min(used, text_.size()));
  }

  bool accept(char wanted) {
    skip_spaces();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(1);
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("'{}' is missing before '{}'", wanted, excerpt(text_)));
  }

  std::string_view read_string() {
    skip_spaces();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') fail(fmt::format("no string before '{}'", excerpt(text_)));
    text_.remove_prefix(1);
    const std::size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail("a string does not end");
    const std::string_view string = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return string;
  }

  void read_type() {
    if (accept('['))
      throw Unimplemented("{}: an array of structures is not read; save each of its fields as an array",
                          place_);
    const std::string_view type = read_string();
    const char order = type.empty() ? '\0' : type.front();
    // Without a mark the order is that of the machine, as with '='.
    const bool has_mark = std::string_view("<>|=").find(order) != std::string_view::npos;
    const auto* const known = std::ranges::find(kTypeNames, type.substr(has_mark ? 1 : 0), &TypeName::name);
    if (known == kTypeNames.end()) {
      throw Unimplemented("{}: an array of type '{}' is not read; save it as bool, integers or floats",
                          place_, excerpt(type));
    }
    header_.dtype = known->dtype;
    if (order == '<') header_.byte_order = std::endian::little;
    if (order == '>') header_.byte_order = std::endian::big;
  }

  bool read_bool() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view name = value ? "True" : "False";
      if (!text_.starts_with(name)) continue;
      text_.remove_prefix(name.size());
      return value;
    }
    fail(fmt::format("neither True nor False before '{}'", excerpt(text_)));
  }

  void read_shape() {
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      std::int64_t extent = 0;
      const auto [end, status] = std::from_chars(text_.data(), text_.data() + text_.size(), extent);
      if (status != std::errc() || extent < 0) fail(fmt::format("'{}' is no extent", excerpt(text_)));
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      header_.extents.push_back(extent);
      if (text_.starts_with('L')) text_.remove_prefix(1);  // a long of Python 2
      if (accept(')')) break;
      expect(',');
    }
  }

  std::string_view text_;
  const std::string& place_;
  ArrayHeader header_;
  bool fortran_order_ = false;
};

std::size_t preamble_bytes(std::span<const std::byte> start) {
  return start[kNpyMagic.size()] == std::byte{1} ? kShortPreambleBytes : kNpyPreambleBytes;
}

}  // namespace

std::uint64_t npy_header_bytes(std::span<const std::byte> start, const std::string& place) {
  if (start.size() < kShortPreambleBytes || !begins_npy(start))
    throw DataLoss("{}: not an array that NumPy saved: {}", place,
                   compression_hint(start, "it does not begin with \\x93NUMPY"));
  const auto version = static_cast<int>(start[kNpyMagic.size()]);
  if (version < 1 || version > 3)
    throw Unimplemented("{}: version {} of the .npy format is not read; versions 1 to 3 are", place, version);
  const std::size_t preamble = preamble_bytes(start);
  if (start.size() < preamble) throw DataLoss("{}: the file ends within its header; it is truncated", place);
  const auto length = start.subspan(kNpyMagic.size() + 2);
  return preamble + (version == 1 ? load<std::uint16_t>(length, std::endian::little)
                                  : load<std::uint32_t>(length, std::endian::little));
}

bool begins_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kNpyMagic.size() &&
         std::ranges::equal(bytes.first(kNpyMagic.size()), std::as_bytes(std::span(kNpyMagic)));
}

ArrayHeader parse_npy_header(std::span<const std::byte> header, const std::string& place) {
  const auto text = header.subspan(preamble_bytes(header));
  return Dictionary({reinterpret_cast<const char*>(text.data()), text.size()}, place).read();
}

}  // namespace cohort::detail
