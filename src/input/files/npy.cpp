// What NumPy saves: one array in a file (.npy), and several in a zip archive (.npz).

#include <cohort/input/files/npy.h>

#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "array_file.h"
#include "device/memory_limits.h"
#include "foreign_data.h"
#include "input_file.h"

namespace cohort::detail {
namespace {

// The header of an array that NumPy saved [NEP 1, versions 1.0 to 3.0]: a magic string, a length, and a
// Python dictionary with the type, the order and the shape.

constexpr std::string_view kNpyMagic = "\x93NUMPY";
/// The first bytes, which contain the length of the header.
constexpr std::size_t kNpyPreambleBytes = 12;
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

/// Whether an array of NumPy's, or the beginning of one, is there.
bool begins_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kNpyMagic.size() &&
         std::ranges::equal(bytes.first(kNpyMagic.size()), std::as_bytes(std::span(kNpyMagic)));
}

/// How many bytes come before the elements; in a damaged file this may be more than there are. `start` is the
/// start of the file: at least kNpyPreambleBytes, unless the file is shorter. @throws DataLoss naming
/// `place`.
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

/// `header` is everything before the elements.
/// @throws DataLoss for a malformed header; Unimplemented for an array that no tensor can hold.
ArrayHeader parse_npy_header(std::span<const std::byte> header, const std::string& place) {
  const auto text = header.subspan(preamble_bytes(header));
  return Dictionary({reinterpret_cast<const char*>(text.data()), text.size()}, place).read();
}

}  // namespace
}  // namespace cohort::detail

namespace cohort {
namespace {

using detail::MappedFile;

class NpyFormat final : public detail::ArrayFormat {
 public:
  explicit NpyFormat(const NpyOptions& options) : ArrayFormat("npy"), options_(options) {}

 private:
  [[nodiscard]] Header read_header(MappedFile& file) const override {
    const std::string& path = file.path();
    const std::size_t preamble = std::min<std::uint64_t>(file.size(), detail::kNpyPreambleBytes);
    const std::uint64_t end = detail::npy_header_bytes(file.bytes(0, preamble), path);
    if (end > file.size())
      throw DataLoss("{}: the header is {} bytes long, but the file {}; it is truncated", path, end,
                     file.size());
    detail::ArrayHeader array = detail::parse_npy_header(file.bytes(0, end), path);
    if (options_.dtype && *options_.dtype != array.dtype) {
      throw InvalidArgument("{}: the array is of {}, not {}; save it with astype('{}'), or ask for {}", path,
                            to_string(array.dtype), to_string(*options_.dtype), to_string(*options_.dtype),
                            to_string(array.dtype));
    }
    // numpy.save may have been called more often on one file; numpy.load reads the first array, too.
    const std::uint64_t rest = file.size() - end;
    const std::optional<std::uint64_t> own = detail::bytes_of(array);
    const bool has_more = own && *own < rest &&
                          detail::begins_npy(file.bytes(
                              end + *own, std::min<std::uint64_t>(rest - *own, detail::kNpyPreambleBytes)));
    return {std::move(array), end, has_more ? rest - *own : 0};
  }

  NpyOptions options_;
};

}  // namespace

Dataset<Tensor> npy_dataset(std::vector<std::string> files, const NpyOptions& options) {
  return Dataset<Tensor>(
      detail::read_files<Tensor>(std::move(files), std::make_shared<const NpyFormat>(options)));
}

}  // namespace cohort

namespace cohort::detail {
namespace {

constexpr std::string_view kSuffix = ".npy";

/// Deflate expands one byte to at most 1032.
constexpr std::uint64_t kLargestExpansion = 1032;

/// One array in the archive.
struct Entry {
  std::string name;  ///< without the suffix
  zip_stat_t status{};
};

class NpzFile {
 public:
  explicit NpzFile(const std::string& path) : path_(path) {
    const InputFile file(path, "npz");
    file_bytes_ = file.size();
    const int descriptor = ::dup(file.descriptor());  // which libzip closes
    if (descriptor < 0) throw Unavailable("cannot open npz file '{}': {}", path, std::strerror(errno));
    int code = 0;
    archive_.reset(::zip_fdopen(descriptor, ZIP_CHECKCONS, &code));
    if (archive_ != nullptr) return;
    ::close(descriptor);
    zip_error_t error;
    ::zip_error_init_with_code(&error, code);
    const std::string text = ::zip_error_strerror(&error);
    ::zip_error_fini(&error);
    throw DataLoss("{}: not a .npz file as numpy.savez writes it: {}", path, text);
  }

  [[nodiscard]] std::vector<Tensor> read(const std::vector<std::string>& names) {
    const std::vector<Entry> entries = list();
    if (names.empty() && entries.size() != 1) {
      throw InvalidArgument("{}: it has {} arrays; say in NpzOptions::arrays which to read, of {}", path_,
                            entries.size(), names_of(entries));
    }
    std::vector<Tensor> arrays;
    if (names.empty()) arrays.push_back(read(entries.front()));
    for (const std::string& name : names) {
      const auto entry = std::ranges::find(entries, name, &Entry::name);
      if (entry == entries.end())
        throw InvalidArgument("{}: no array is called '{}'; there are {}", path_, name, names_of(entries));
      arrays.push_back(read(*entry));
    }
    return arrays;
  }

 private:
  struct Discard {
    void operator()(zip_t* archive) const { ::zip_discard(archive); }
    void operator()(zip_file_t* file) const { ::zip_fclose(file); }
  };

  static std::string names_of(const std::vector<Entry>& entries) {
    constexpr std::size_t kMost = 20;
    std::vector<std::string> names;
    for (const Entry& entry : entries) {
      if (names.size() < kMost) names.push_back(excerpt(entry.name));
    }
    return fmt::format("{}{}", fmt::join(names, ", "), entries.size() > kMost ? ", ..." : "");
  }

  [[nodiscard]] std::vector<Entry> list() {
    std::vector<Entry> entries;
    const auto count = static_cast<zip_uint64_t>(::zip_get_num_entries(archive_.get(), 0));
    for (zip_uint64_t index = 0; index < count; ++index) {
      zip_stat_t status;
      if (::zip_stat_index(archive_.get(), index, 0, &status) != 0) fail("its directory");
      std::string name = status.name;
      if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
      entries.push_back({std::move(name), status});
    }
    return entries;
  }

  /// Memory is asked for only after this.
  [[nodiscard]] std::size_t plausible_bytes(const Entry& entry) const {
    const zip_stat_t& status = entry.status;
    const bool compressed = status.comp_method == ZIP_CM_DEFLATE;
    if (!compressed && status.comp_method != ZIP_CM_STORE) {
      throw Unimplemented(
          "{}: array '{}' is compressed by method {} of zip; write it with numpy.savez_compressed", path_,
          excerpt(entry.name), status.comp_method);
    }
    if (status.comp_size > file_bytes_ ||
        status.size > status.comp_size * (compressed ? kLargestExpansion : 1)) {
      throw DataLoss("{}: array '{}' claims {} bytes, more than {} bytes of the file can hold; it is damaged",
                     path_, excerpt(entry.name), status.size, status.comp_size);
    }
    // Where it is compressed, a small file can take any memory, and the kernel would end the process.
    if (status.size > available_memory()) {
      throw Unavailable(
          "{}: array '{}' has {} bytes when it is unpacked, more than the {} that are free here", path_,
          excerpt(entry.name), status.size, available_memory());
    }
    return status.size;
  }

  [[nodiscard]] Tensor read(const Entry& entry) {
    const std::string place = fmt::format("{}: array '{}'", path_, excerpt(entry.name));
    const std::shared_ptr<const Buffer> buffer = allocate_private(plausible_bytes(entry), Device());
    const std::span<std::byte> bytes{buffer->data(), buffer->bytes()};
    extract(entry, bytes);
    const std::uint64_t end = npy_header_bytes(bytes, place);
    if (end > bytes.size())
      throw DataLoss("{}: the header is {} bytes long, but the array {}", place, end, bytes.size());
    const ArrayHeader header = parse_npy_header(bytes.first(end), place);
    const Shape shape = checked_shape(header, bytes.size() - end, place);
    // The elements are moved only if the header's length does not align them.
    const std::size_t start = end - end % size_of(header.dtype);
    std::memmove(bytes.data() + start, bytes.data() + end, bytes.size() - end);
    Tensor array = Tensor::wrap(buffer, start, shape, header.dtype);
    if (header.byte_order != std::endian::native) swap_bytes(array);
    require_valid_elements(array, place, end);
    return array;
  }

  void extract(const Entry& entry, std::span<std::byte> to) {
    const std::unique_ptr<zip_file_t, Discard> file(::zip_fopen_index(archive_.get(), entry.status.index, 0));
    if (file == nullptr) fail(fmt::format("array '{}'", excerpt(entry.name)));
    std::size_t done = 0;
    // libzip compares the checksum when it reaches the end, so one byte more is asked for.
    std::byte beyond{};
    while (true) {
      const bool full = done == to.size();
      const zip_int64_t count = full ? ::zip_fread(file.get(), &beyond, 1)
                                     : ::zip_fread(file.get(), to.data() + done, to.size() - done);
      if (count < 0) {
        throw DataLoss("{}: array '{}' is damaged: {}; write the file again", path_, excerpt(entry.name),
                       ::zip_error_strerror(::zip_file_get_error(file.get())));
      }
      if (full != (count == 0)) {
        throw DataLoss("{}: array '{}' is {} than the {} bytes that the file says; write it again", path_,
                       excerpt(entry.name), full ? "longer" : "shorter", to.size());
      }
      if (full) return;
      done += static_cast<std::size_t>(count);
    }
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataLoss("{}: {} cannot be read: {}; write the file again", path_, what,
                   ::zip_strerror(archive_.get()));
  }

  std::string path_;
  std::uint64_t file_bytes_ = 0;
  std::unique_ptr<zip_t, Discard> archive_;
};

}  // namespace

std::vector<Tensor> read_npz(const std::string& path, const std::vector<std::string>& names) {
  return NpzFile(path).read(names);
}

void require_as_many(std::size_t arrays, std::size_t tensors, const std::string& path) {
  if (arrays == tensors) return;
  throw InvalidArgument(
      "{}: {} arrays cannot fill an element of {} tensors; name one for each in NpzOptions::arrays", path,
      arrays, tensors);
}

}  // namespace cohort::detail
