#include "safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/json.h"

namespace cohort::checkpoint {
namespace {

using Kind = JsonValue::Kind;

static_assert(std::endian::native == std::endian::little, "safetensors has the least significant byte first");

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as in the reference implementation
constexpr std::size_t kAlignment = 8;                  // of the largest elements
constexpr const char* kMetadata = "__metadata__";

// In the order of DType.
constexpr std::array<std::string_view, kAllDTypes.size()> kDTypeNames{
    "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "BF16", "F32", "F64", "BOOL"};

/// What a tensor is called in messages: made into text when there is one.
struct TensorIn {
  std::string_view name;
  std::string_view path;
};

std::string in_words(const TensorIn& tensor) {
  return fmt::format("tensor '{}' in '{}'", tensor.name, tensor.path);
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto found = std::ranges::find(kDTypeNames, name);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypeNames.begin());
}

/// Elements that tensors here do not have.
struct ForeignDType {
  std::string_view name;
  std::uint32_t bits;
};
constexpr std::array<ForeignDType, 9> kForeignDTypes{{{"F8_E4M3", 8},
                                                      {"F8_E5M2", 8},
                                                      {"F8_E4M3FNUZ", 8},
                                                      {"F8_E5M2FNUZ", 8},
                                                      {"F8_E8M0", 8},
                                                      {"F6_E2M3", 6},
                                                      {"F6_E3M2", 6},
                                                      {"F4", 4},
                                                      {"C64", 64}}};

/// Of numbers from 0 to 2^63-1.
std::vector<std::int64_t> counts_in(const JsonValue& entry, const char* key, const TensorIn& tensor) {
  const JsonValue* const list = entry.find(key);
  std::vector<std::int64_t> counts;
  counts.reserve(Shape::kLargestRank);
  bool is_list = list != nullptr && list->is(Kind::kList);
  if (is_list) {
    for (const JsonValue& each : *list) {
      counts.push_back(each.number<std::int64_t>().value_or(-1));
      is_list = is_list && counts.back() >= 0;
    }
  }
  if (!is_list) throw DataLoss("{}: its {} is no list of numbers", in_words(tensor), key);
  return counts;
}

Shape shape_in(const JsonValue& entry, const TensorIn& tensor) {
  const auto extents = counts_in(entry, "shape", tensor);
  try {
    return Shape(extents);
  } catch (const InvalidArgument& error) {
    throw DataLoss("{}: {}", in_words(tensor), error.what());
  }
}

/// What a tensor of foreign elements consists of.
TensorPlace parts_of_foreign(const ForeignDType& dtype, const Shape& shape, const TensorIn& tensor) {
  constexpr std::uint32_t kByte = 8;
  std::vector<std::int64_t> extents = Shape(shape).extents();
  if (dtype.bits == 64) {
    extents.push_back(2);
  } else if (dtype.bits < kByte) {
    // Division before multiplication, for the product may not fit.
    const std::int64_t group = kByte / std::gcd(kByte, dtype.bits);  // of elements that fill whole bytes
    if (extents.empty() || extents.back() % group != 0) {
      throw DataLoss("{}: {}{} cannot be read as bytes: {} elements share {}, and a row has {}",
                     in_words(tensor), dtype.name, to_string(shape), group, group * dtype.bits / kByte,
                     extents.empty() ? 1 : extents.back());
    }
    extents.back() = extents.back() / group * (group * dtype.bits / kByte);
  }
  try {
    return {dtype.bits == 64 ? DType::kFloat32 : DType::kUInt8, Shape(extents), 0, dtype.name};
  } catch (const InvalidArgument& error) {
    throw DataLoss("{}: {} as float32: {}", in_words(tensor), dtype.name, error.what());
  }
}

TensorPlace type_in(const JsonValue& entry, std::string_view name, const TensorIn& tensor) {
  const Shape shape = shape_in(entry, tensor);
  if (const auto dtype = dtype_named(name)) return {*dtype, shape, 0};
  const auto foreign = std::ranges::find(kForeignDTypes, name, &ForeignDType::name);
  if (foreign == kForeignDTypes.end())
    throw DataLoss("{}: dtype '{}' is unknown here", in_words(tensor), name);
  return parts_of_foreign(*foreign, shape, tensor);
}

TensorPlace place_in(const JsonValue& entry, std::uint64_t data_begin, std::uint64_t data_bytes,
                     const TensorIn& tensor) {
  if (!entry.is(Kind::kObject)) throw DataLoss("{}: its entry in the header is no object", in_words(tensor));
  const JsonValue* const named = entry.find("dtype");
  if (named == nullptr || !named->is(Kind::kText)) throw DataLoss("{}: it has no dtype", in_words(tensor));
  TensorPlace place = type_in(entry, named->text(), tensor);
  const auto offsets = counts_in(entry, "data_offsets", tensor);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<std::uint64_t>(offsets[1]) > data_bytes)
    throw DataLoss("{}: its place does not lie within the file's {} bytes of data", in_words(tensor),
                   data_bytes);
  const auto bytes = static_cast<std::uint64_t>(offsets[1] - offsets[0]);
  // Division, for the number of bytes may not fit 64 bits.
  if (const std::size_t size = size_of(place.dtype);
      bytes % size != 0 || bytes / size != place.shape.elements()) {
    throw DataLoss("{}: {} bytes are not what {}{} has", in_words(tensor), bytes, to_string(place.dtype),
                   to_string(place.shape));
  }
  place.begin = data_begin + static_cast<std::uint64_t>(offsets[0]);
  return place;
}

/// Every byte of the data belongs to one tensor, so that checksums of tensors leave none out.
void require_no_gaps(const SafetensorsHeader& header, std::uint64_t data_begin, std::uint64_t file_size,
                     const std::string& path) {
  std::vector<std::pair<std::uint64_t, const std::pair<const std::string, TensorPlace>*>> by_place;
  for (const auto& tensor : header.tensors) by_place.emplace_back(tensor.second.begin, &tensor);
  std::ranges::sort(by_place, [](const auto& a, const auto& b) {
    // Empty tensors come before the one that begins at the same place.
    return std::pair(a.first, a.second->second.bytes()) < std::pair(b.first, b.second->second.bytes());
  });
  std::uint64_t end = data_begin;
  for (const auto& [begin, tensor] : by_place) {
    if (begin != end) {
      throw DataLoss("tensor '{}' in '{}' begins {} the end of the one before it", tensor->first, path,
                     begin < end ? "before" : "behind");
    }
    end += tensor->second.bytes();
  }
  if (end != file_size) {
    throw DataLoss("'{}' has {} bytes, and its tensors end at {}: it was cut off, or has been added to", path,
                   file_size, end);
  }
}

}  // namespace

std::string_view safetensors_name(DType dtype) noexcept {
  return kDTypeNames[static_cast<std::size_t>(dtype)];
}

std::uint64_t header_length(std::span<const std::byte> first, std::uint64_t file_size,
                            const std::string& path) {
  std::uint64_t length = 0;
  static_assert(sizeof length == kHeaderLengthBytes);
  if (first.size() < sizeof length)
    throw DataLoss("'{}' has {} bytes, too few for a safetensors file", path, file_size);
  std::memcpy(&length, first.data(), sizeof length);
  if (length > kLargestHeader || length > file_size - sizeof length) {
    throw DataLoss("'{}' is no safetensors file, or was cut off: its header of {} bytes is longer than {}",
                   path, length, length > kLargestHeader ? "any that is read" : "the file");
  }
  return length;
}

SafetensorsHeader parse_header(std::string_view text, std::uint64_t file_size, const std::string& path) {
  const JsonDocument document(text, fmt::format("the header of '{}'", path));
  if (!document.root().is(Kind::kObject)) throw DataLoss("the header of '{}' is no object of tensors", path);

  SafetensorsHeader header;
  const std::uint64_t data_begin = kHeaderLengthBytes + text.size();
  for (const JsonValue& name : document.root()) {
    const JsonValue& entry = name.value();
    if (name.text() != kMetadata) {
      header.tensors.emplace(name.text(),
                             place_in(entry, data_begin, file_size - data_begin, {name.text(), path}));
      continue;
    }
    if (!entry.is(Kind::kObject)) throw DataLoss("{} in '{}' is no object", kMetadata, path);
    for (const JsonValue& key : entry) {
      if (!key.value().is(Kind::kText))
        throw DataLoss("{} in '{}': '{}' is no text", kMetadata, path, key.text());
      header.metadata.emplace(key.text(), key.value().text());
    }
  }
  require_no_gaps(header, data_begin, file_size, path);
  return header;
}

SafetensorsHeader read_header(const InputFile& file) {
  std::array<std::byte, kHeaderLengthBytes> first{};
  const auto begin = std::span(first).first(std::min<std::uint64_t>(first.size(), file.size()));
  file.read(0, begin);
  std::string text(header_length(begin, file.size(), file.path()), '\0');
  file.read(kHeaderLengthBytes, std::as_writable_bytes(std::span(text)));
  return parse_header(text, file.size(), file.path());
}

std::map<std::string, std::string> parse_index(std::string_view text, const std::string& path) {
  const JsonDocument document(text, fmt::format("'{}'", path));
  const JsonValue* const files = document.root().find("weight_map");
  if (files == nullptr || !files->is(Kind::kObject))
    throw DataLoss("'{}' is no index of safetensors files: it has no object 'weight_map'", path);
  std::map<std::string, std::string> result;
  for (const JsonValue& tensor : *files) {
    const JsonValue& file = tensor.value();
    if (!file.is(Kind::kText)) throw DataLoss("'{}': tensor '{}' has no name of a file", path, tensor.text());
    // An index must not lead anywhere else.
    if (!is_plain_name(file.text())) {
      throw DataLoss("'{}': tensor '{}' has no name of a file in this folder, but '{}'", path, tensor.text(),
                     file.text());
    }
    result.emplace(tensor.text(), file.text());
  }
  return result;
}

std::string begin_safetensors(std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  const auto is_before = [](const NamedTensor& a, const NamedTensor& b) {
    return std::pair(size_of(b.dtype), std::string_view(a.name)) <
           std::pair(size_of(a.dtype), std::string_view(b.name));
  };
  // As most are, which come by name and have one dtype.
  if (!std::ranges::is_sorted(tensors, is_before)) std::ranges::sort(tensors, is_before);
  std::string text;
  const auto append_name = [&](std::string_view name, char before) {
    text += before;
    append_quoted(text, name, BadUtf8::kRefuse);
    text += ':';
  };
  if (!metadata.empty()) {
    append_name(kMetadata, '{');
    for (const auto& [key, value] : metadata) {
      append_name(key, text.ends_with(':') ? '{' : ',');
      append_quoted(text, value, BadUtf8::kRefuse);
    }
    text += '}';
  }
  std::unordered_set<std::string_view> names{kMetadata};
  std::uint64_t end = 0;
  for (const NamedTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      throw InvalidArgument("a safetensors file cannot have two tensors '{}'", tensor.name);
    const std::uint64_t begin = end;
    end += tensor.shape.elements() * size_of(tensor.dtype);
    append_name(tensor.name, text.empty() ? '{' : ',');
    text += R"({"dtype":")";
    text += safetensors_name(tensor.dtype);
    text += R"(","shape":)";
    append_list(text, tensor.shape.extents());
    text += R"(,"data_offsets":)";
    append_list(text, std::array{static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end)});
    text += '}';
  }
  text += text.empty() ? "{}" : "}";
  // The format allows spaces at the end; they align the elements.
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const auto length = static_cast<std::uint64_t>(text.size());
  std::string beginning(sizeof length, '\0');
  std::memcpy(beginning.data(), &length, sizeof length);
  return beginning + text;
}

}  // namespace cohort::checkpoint
