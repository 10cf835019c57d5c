#include "safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "json.h"

namespace cohort::checkpoint {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors has the least significant byte first");

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as in the reference implementation
constexpr std::size_t kAlignment = 8;                  // of the largest elements
constexpr const char* kMetadata = "__metadata__";

// In the order of DType.
constexpr std::array<std::string_view, kAllDTypes.size()> kDTypeNames{
    "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F16", "BF16", "F32", "F64", "BOOL"};

std::string_view safetensors_name(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_named(std::string_view name) {
  const auto found = std::ranges::find(kDTypeNames, name);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypeNames.begin());
}

/// A number of at most 2^63-1.
std::optional<std::int64_t> count_in(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  const auto count = value.get<std::uint64_t>();
  if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
  return static_cast<std::int64_t>(count);
}

std::vector<std::int64_t> counts_in(const Json& entry, const char* key, const std::string& what) {
  const auto member = entry.find(key);
  std::vector<std::int64_t> counts;
  bool is_list = member != entry.end() && member->is_array();
  for (std::size_t i = 0; is_list && i < member->size(); ++i) {
    const auto count = count_in((*member)[i]);
    is_list = count.has_value();
    counts.push_back(count.value_or(0));
  }
  if (!is_list) throw DataLoss("{}: its {} is no list of numbers", what, key);
  return counts;
}

Shape shape_in(const Json& entry, const std::string& what) {
  const auto extents = counts_in(entry, "shape", what);
  try {
    return Shape(extents);
  } catch (const InvalidArgument& error) {
    throw DataLoss("{}: {}", what, error.what());
  }
}

TensorPlace place_in(const Json& entry, std::uint64_t data_begin, std::uint64_t data_bytes,
                     const std::string& what) {
  if (!entry.is_object()) throw DataLoss("{}: its entry in the header is no object", what);
  const auto dtype_entry = entry.find("dtype");
  if (dtype_entry == entry.end() || !dtype_entry->is_string()) throw DataLoss("{}: it has no dtype", what);
  const auto dtype = dtype_named(dtype_entry->get_ref<const std::string&>());
  if (!dtype)
    throw DataLoss("{}: dtype '{}' is unknown here", what, dtype_entry->get_ref<const std::string&>());

  TensorPlace place{*dtype, shape_in(entry, what), 0};
  const auto offsets = counts_in(entry, "data_offsets", what);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<std::uint64_t>(offsets[1]) > data_bytes)
    throw DataLoss("{}: its place does not lie within the file's {} bytes of data", what, data_bytes);
  const auto bytes = static_cast<std::uint64_t>(offsets[1] - offsets[0]);
  // Division, for the number of bytes may not fit 64 bits.
  if (bytes % size_of(*dtype) != 0 || bytes / size_of(*dtype) != place.shape.elements()) {
    throw DataLoss("{}: {} bytes are not what {}{} has", what, bytes, to_string(*dtype),
                   to_string(place.shape));
  }
  place.begin = data_begin + static_cast<std::uint64_t>(offsets[0]);
  return place;
}

/// Every byte of the data belongs to one tensor, so that checksums of tensors leave none out.
void require_no_gaps(const SafetensorsHeader& header, std::uint64_t data_begin, const InputFile& file) {
  std::vector<std::pair<std::uint64_t, const std::pair<const std::string, TensorPlace>*>> by_place;
  for (const auto& tensor : header.tensors) by_place.emplace_back(tensor.second.begin, &tensor);
  std::ranges::sort(by_place, [](const auto& a, const auto& b) {
    // Empty tensors come before the one that begins at the same place.
    return std::pair(a.first, a.second->second.bytes()) < std::pair(b.first, b.second->second.bytes());
  });
  std::uint64_t end = data_begin;
  for (const auto& [begin, tensor] : by_place) {
    if (begin != end) {
      throw DataLoss("tensor '{}' in '{}' begins {} the end of the one before it", tensor->first, file.path(),
                     begin < end ? "before" : "behind");
    }
    end += tensor->second.bytes();
  }
  if (end != file.size()) {
    throw DataLoss("'{}' has {} bytes, and its tensors end at {}: it was cut off, or has been added to",
                   file.path(), file.size(), end);
  }
}

}  // namespace

SafetensorsHeader read_header(const InputFile& file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length)
    throw DataLoss("'{}' has {} bytes, too few for a safetensors file", file.path(), file.size());
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLargestHeader || length > file.size() - sizeof length) {
    throw DataLoss("'{}' is no safetensors file, or was cut off: its header of {} bytes is longer than {}",
                   file.path(), length, length > kLargestHeader ? "any that is read" : "the file");
  }
  std::string text(length, '\0');
  file.read(sizeof length, std::as_writable_bytes(std::span(text)));
  const auto json = parse_json<Json>(text, fmt::format("the header of '{}'", file.path()));
  if (!json.is_object()) throw DataLoss("the header of '{}' is no object of tensors", file.path());

  SafetensorsHeader header;
  const std::uint64_t data_begin = sizeof length + length;
  for (const auto& [name, entry] : json.items()) {
    if (name != kMetadata) {
      header.tensors.emplace(name, place_in(entry, data_begin, file.size() - data_begin,
                                            fmt::format("tensor '{}' in '{}'", name, file.path())));
      continue;
    }
    if (!entry.is_object()) throw DataLoss("{} in '{}' is no object", kMetadata, file.path());
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) throw DataLoss("{} in '{}': '{}' is no text", kMetadata, file.path(), key);
      header.metadata.emplace(key, value.get<std::string>());
    }
  }
  require_no_gaps(header, data_begin, file);
  return header;
}

std::string begin_safetensors(std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::ranges::sort(tensors, [](const NamedTensor& a, const NamedTensor& b) {
    return std::pair(size_of(b.dtype), std::string_view(a.name)) <
           std::pair(size_of(a.dtype), std::string_view(b.name));
  });
  std::string text;
  const auto begin_member = [&](std::string_view name) {
    text += text.empty() ? '{' : ',';
    text += quoted(name) + ':';
  };
  if (!metadata.empty()) {
    begin_member(kMetadata);
    text += Json(metadata).dump();
  }
  std::unordered_set<std::string_view> names{kMetadata};
  std::uint64_t end = 0;
  for (const NamedTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      throw InvalidArgument("a safetensors file cannot have two tensors '{}'", tensor.name);
    const std::uint64_t begin = end;
    end += tensor.shape.elements() * size_of(tensor.dtype);
    begin_member(tensor.name);
    fmt::format_to(std::back_inserter(text), R"({{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                   safetensors_name(tensor.dtype), list_of_extents(tensor.shape), begin, end);
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
