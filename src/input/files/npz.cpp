#include <unistd.h>
#include <zip.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/ranges.h>

#include <cohort/input/files/npy.h>

#include "device/memory_limits.h"
#include "excerpt.h"
#include "foreign_elements.h"
#include "input_file.h"
#include "npy_header.h"

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
