#include "event_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/device/tensor.h>
#include <cohort/input/files/tf_record.h>

namespace cohort::testing {
namespace {

using Json = nlohmann::json;

/// The fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}

  bool next() {
    if (left_.empty()) return false;
    const std::uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    const int kind = static_cast<int>(key & 7U);
    if (kind == 0) number = varint();
    if (kind == 1) std::memcpy(&number, take(8).data(), 8);
    if (kind == 2) bytes = take(varint());
    if (kind == 5) take(4);
    return true;
  }

  int field = 0;
  std::uint64_t number = 0;
  std::string_view bytes;

 private:
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(take(1)[0]));
      value |= (byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
  }

  std::string_view take(std::size_t count) {
    if (count > left_.size()) throw std::runtime_error("a message ends within a field");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }

  std::string_view left_;
};

DType dtype_of(std::uint64_t number) {
  constexpr std::array kNumbers{6, 5, 3, 9, 4, 17, 22, 23, 19, 14, 1, 2, 10};  // in the order of DType
  return static_cast<DType>(std::ranges::find(kNumbers, static_cast<int>(number)) - kNumbers.begin());
}

Json nested(const std::vector<Json>& values, std::span<const std::int64_t> extents, std::size_t& next) {
  if (extents.empty()) return values.at(next++);
  Json list = Json::array();
  for (std::int64_t i = 0; i < extents[0]; ++i) list.push_back(nested(values, extents.subspan(1), next));
  return list;
}

std::vector<Json> numbers_of(DType dtype, std::string_view content) {
  const auto count = static_cast<std::int64_t>(content.size() / size_of(dtype));
  const Tensor tensor = Tensor::uninitialized({count}, dtype);
  std::memcpy(tensor.data(), content.data(), content.size());
  std::vector<Json> values;
  for (const double value : tensor.cast(DType::kFloat64).span<double>()) {
    if (dtype == DType::kBool)
      values.emplace_back(value != 0);
    else if (is_floating(dtype))
      values.emplace_back(value);
    else
      values.emplace_back(static_cast<std::int64_t>(value));
  }
  return values;
}

void add_tensor(Json& value, std::string_view bytes) {
  constexpr std::uint64_t kString = 7;
  std::uint64_t kind = 0;
  std::vector<std::int64_t> extents;
  std::vector<Json> elements;
  std::string_view content;
  for (Fields of(bytes); of.next();) {
    if (of.field == 1) kind = of.number;
    if (of.field == 4) content = of.bytes;
    if (of.field == 8) elements.emplace_back(std::string(of.bytes));
    if (of.field != 2) continue;
    for (Fields shape(of.bytes); shape.next();)
      for (Fields extent(shape.bytes); extent.next();)
        extents.push_back(static_cast<std::int64_t>(extent.number));
  }
  if (kind != kString) elements = numbers_of(dtype_of(kind), content);
  std::size_t next = 0;
  value["tensor"] = nested(elements, extents, next);
  value["dtype"] = kind == kString ? "string" : std::string(to_string(dtype_of(kind)));
}

void add_metadata(Json& value, std::string_view bytes) {
  for (Fields of(bytes); of.next();) {
    if (of.field == 3) value["description"] = of.bytes;
    if (of.field != 1) continue;
    for (Fields plugin(of.bytes); plugin.next();) {
      if (plugin.field == 1) value["plugin"] = plugin.bytes;
      if (plugin.field == 2) value["plugin_content_hex"] = hex_of(plugin.bytes);
    }
  }
}

Json value_of(std::string_view bytes) {
  Json value{{"tag", ""},          {"kind", "tensor"},  {"plugin", ""},   {"plugin_content_hex", ""},
             {"display_name", ""}, {"description", ""}, {"data_class", 0}};
  for (Fields of(bytes); of.next();) {
    if (of.field == 1) value["tag"] = of.bytes;
    if (of.field == 8) add_tensor(value, of.bytes);
    if (of.field == 9) add_metadata(value, of.bytes);
  }
  return value;
}

Json event_of(std::string_view bytes) {
  Json event{{"step", 0}};
  for (Fields of(bytes); of.next();) {
    if (of.field == 2) event["step"] = static_cast<std::int64_t>(of.number);
    if (of.field == 3) event.update({{"what", "file_version"}, {"file_version", of.bytes}});
    if (of.field == 5) {
      event["what"] = "summary";
      for (Fields values(of.bytes); values.next();) event["values"].push_back(value_of(values.bytes));
    }
    if (of.field == 7) event["what"] = "restart";
    if (of.field != 10) continue;
    for (Fields source(of.bytes); source.next();) event["source_metadata"] = source.bytes;
  }
  return event;
}

}  // namespace

Json events_of(const std::string& path) {
  Json events = Json::array();
  try {
    for (const Tensor& record : tf_record_dataset({path}))
      events.push_back(event_of({reinterpret_cast<const char*>(record.data()), record.bytes()}));
  } catch (const DataLoss&) {  // it was cut there
  }
  return events;
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files, {}, [](const std::string& file) { return std::pair(file.size(), file); });
  return files;
}

Json scalars_of(const std::string& folder) {
  Json scalars = Json::array();
  for (const std::string& file : files_of(folder))
    for (const Json& event : events_of(file))
      if (event.contains("values"))
        for (const Json& value : event["values"])
          if (value["plugin"] == "scalars") scalars.push_back({value["tag"], event["step"], value["tensor"]});
  return scalars;
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace cohort::testing
