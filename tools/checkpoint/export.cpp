// The command that writes the values of a checkpoint to files for other programs: here .npz.

#include <zip.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>

#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "command.h"
#include "export.h"
#include "selection.h"

namespace cohort::tool {
namespace {

// NumPy's names, in the order of DType.
constexpr std::array<std::string_view, kAllDTypes.size()> kNames{
    "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "|V2", "<f4", "<f8", "|b1"};

/// What precedes the elements in a file .npy, version 1.0 of the format.
std::string npy_header(const ExportedValue& value) {
  const auto extents = value.shape.extents();
  const std::string shape = fmt::format("{}{}", fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 kNames[static_cast<std::size_t>(value.dtype)], shape);
  constexpr std::size_t kBefore = 10;
  constexpr std::size_t kAlignment = 64;
  text.append(kAlignment - 1 - (kBefore + text.size()) % kAlignment, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

/// A value as a file of the archive, which libzip reads when it writes the archive.
struct Array {
  const ExportedValue* value = nullptr;
  checkpoint::PieceReader* reader = nullptr;
  std::string header = {};
  Tensor elements = {};
  std::uint64_t offset = 0;
  std::exception_ptr* failure = nullptr;  ///< the first of all arrays

  [[nodiscard]] std::uint64_t size() const { return header.size() + value->bytes(); }

  std::uint64_t read(std::span<std::byte> bytes) {
    const std::array parts{std::as_bytes(std::span(header)), std::span<const std::byte>(elements.raw())};
    std::uint64_t count = 0;
    std::uint64_t begin = 0;
    for (const std::span<const std::byte> part : parts) {
      if (offset >= begin && offset - begin < part.size()) {
        const auto piece = part.subspan(offset - begin);
        const std::size_t taken = std::min(piece.size(), bytes.size() - count);
        std::memcpy(bytes.data() + count, piece.data(), taken);
        count += taken;
        offset += taken;
      }
      begin += part.size();
    }
    return count;
  }
};

/// What libzip asks of a source [zip_source_function(3)].
zip_int64_t answer(void* data, void* bytes, zip_uint64_t length, zip_source_cmd_t command) {
  auto& array = *static_cast<Array*>(data);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      try {
        array.elements = array.value->read(*array.reader);
        array.offset = 0;
        return 0;
      } catch (...) {
        if (*array.failure == nullptr) *array.failure = std::current_exception();
        return -1;
      }
    case ZIP_SOURCE_READ:
      return static_cast<zip_int64_t>(array.read({static_cast<std::byte*>(bytes), length}));
    case ZIP_SOURCE_CLOSE: array.elements = {}; return 0;
    case ZIP_SOURCE_STAT: {
      auto& status = *static_cast<zip_stat_t*>(bytes);
      zip_stat_init(&status);
      status.size = array.size();
      status.valid = ZIP_STAT_SIZE;
      return sizeof status;
    }
    case ZIP_SOURCE_ERROR: {
      const std::array<int, 2> error{ZIP_ER_READ, 0};
      std::memcpy(bytes, error.data(), sizeof error);
      return sizeof error;
    }
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                            ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, -1);
    default: return 0;
  }
}

[[noreturn]] void fail(const std::string& target, const std::string& cause) {
  throw Unavailable("cannot write '{}': {}", target, cause);
}

void add(zip_t* archive, const std::string& target, Array& array) {
  zip_source_t* source = ::zip_source_function(archive, &answer, &array);
  if (source == nullptr) fail(target, ::zip_strerror(archive));
  const zip_int64_t index =
      ::zip_file_add(archive, (array.value->name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) {
    const std::string cause = ::zip_strerror(archive);
    ::zip_source_free(source);
    fail(target, cause);
  }
  if (::zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0)
    fail(target, ::zip_strerror(archive));
}

/// NumPy's format of several arrays in one file: a zip archive, not compressed, of NAME.npy for each.
///
/// Writes the values of the checkpoint at `path` to `target`, which is replaced when all are written. Memory
/// is taken for one of them at a time. NumPy has no bfloat16: such values become items of 2 bytes, as JAX
/// saves them.
/// @throws Unavailable, and as PieceReader::read.
void write_npz(const std::string& target, const std::string& path, std::span<const ExportedValue> values) {
  checkpoint::PieceReader reader(path);
  std::exception_ptr failure;
  std::vector<Array> arrays;
  for (const ExportedValue& value : values)
    arrays.push_back({&value, &reader, npy_header(value), {}, 0, &failure});

  int code = 0;
  std::unique_ptr<zip_t, decltype(&::zip_discard)> archive(
      ::zip_open(target.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code), &::zip_discard);
  if (archive == nullptr) {
    zip_error_t error;
    ::zip_error_init_with_code(&error, code);
    const std::string cause = ::zip_error_strerror(&error);
    ::zip_error_fini(&error);
    fail(target, cause);
  }
  for (Array& array : arrays) add(archive.get(), target, array);
  if (::zip_close(archive.get()) != 0) {
    if (failure != nullptr) std::rethrow_exception(failure);
    fail(target, ::zip_strerror(archive.get()));
  }
  static_cast<void>(archive.release());  // which closing has freed
}

}  // namespace

Tensor ExportedValue::read(checkpoint::PieceReader& reader) const {
  return checkpoint::converted(reader.read(value, *entry), dtype, is_transposed);
}

int export_values(const Arguments& arguments) {
  const std::string& path = arguments.paths.front();
  const auto target = arguments.text("--to");
  if (!target) throw WrongUse("export needs --to FILE");
  const bool is_npz = target->ends_with(".npz");
  if (!is_npz && !target->ends_with(".safetensors"))
    throw WrongUse(fmt::format("export writes .safetensors and .npz, and '{}' is neither", *target));
  const auto shard_bytes = bytes_given(arguments, "--max-shard-size");
  if (is_npz && shard_bytes) throw WrongUse("only .safetensors have shards: leave out --max-shard-size");

  TensorSelection selection(arguments);
  const checkpoint::Manifest manifest = checkpoint::read_manifest(path);
  std::vector<ExportedValue> values;
  for (const auto& [name, entry] : manifest.values) {
    if (!selection.takes(name)) continue;
    const TensorSelection::Outcome outcome = selection.apply(name, entry.dtype, entry.shape);
    values.push_back({outcome.name, name, &entry, outcome.dtype, outcome.shape, outcome.is_transposed});
  }
  selection.require_used(path);
  std::ranges::sort(values, {}, &ExportedValue::name);
  WrittenFiles written{*target};
  if (is_npz)
    write_npz(*target, path, values);
  else
    written = write_safetensors(*target, path, manifest.step, values, shard_bytes);
  const std::string files = written.count == 1 ? "" : fmt::format(" in {} files", written.count);
  fmt::print("{}: {} values of step {}{}\n", written.path, values.size(), manifest.step, files);
  return kSound;
}

}  // namespace cohort::tool
