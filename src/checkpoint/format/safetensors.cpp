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

std::string_view safetensors_name(DType dtype) { return kDTypeNames[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_named(std::string_view name) {
  const auto found = std::ranges::find(kDTypeNames, name);
  if (found == kDTypeNames.end()) return std::nullopt;
  return static_cast<DType>(found - kDTypeNames.begin());
}

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

TensorPlace place_in(const JsonValue& entry, std::uint64_t data_begin, std::uint64_t data_bytes,
                     const TensorIn& tensor) {
  if (!entry.is(Kind::kObject)) throw DataLoss("{}: its entry in the header is no object", in_words(tensor));
  const JsonValue* const named = entry.find("dtype");
  if (named == nullptr || !named->is(Kind::kText)) throw DataLoss("{}: it has no dtype", in_words(tensor));
  const auto dtype = dtype_named(named->text());
  if (!dtype) throw DataLoss("{}: dtype '{}' is unknown here", in_words(tensor), named->text());

  TensorPlace place{*dtype, shape_in(entry, tensor), 0};
  const auto offsets = counts_in(entry, "data_offsets", tensor);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || static_cast<std::uint64_t>(offsets[1]) > data_bytes)
    throw DataLoss("{}: its place does not lie within the file's {} bytes of data", in_words(tensor),
                   data_bytes);
  const auto bytes = static_cast<std::uint64_t>(offsets[1] - offsets[0]);
  // Division, for the number of bytes may not fit 64 bits.
  if (bytes % size_of(*dtype) != 0 || bytes / size_of(*dtype) != place.shape.elements()) {
    throw DataLoss("{}: {} bytes are not what {}{} has", in_words(tensor), bytes, to_string(*dtype),
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
  const JsonDocument document(text, fmt::format("the header of '{}'", file.path()));
  if (!document.root().is(Kind::kObject))
    throw DataLoss("the header of '{}' is no object of tensors", file.path());

  SafetensorsHeader header;
  const std::uint64_t data_begin = sizeof length + length;
  for (const JsonValue& name : document.root()) {
    const JsonValue& entry = name.value();
    if (name.text() != kMetadata) {
      header.tensors.emplace(
          name.text(), place_in(entry, data_begin, file.size() - data_begin, {name.text(), file.path()}));
      continue;
    }
    if (!entry.is(Kind::kObject)) throw DataLoss("{} in '{}' is no object", kMetadata, file.path());
    for (const JsonValue& key : entry) {
      if (!key.value().is(Kind::kText))
        throw DataLoss("{} in '{}': '{}' is no text", kMetadata, file.path(), key.text());
      header.metadata.emplace(key.text(), key.value().text());
    }
  }
  require_no_gaps(header, data_begin, file);
  return header;
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
