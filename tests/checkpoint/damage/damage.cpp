#include "damage.h"

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "input/files/crc32c.h"

namespace cohort::testing {
namespace {

using Json = nlohmann::json;

std::string checksum(const std::string& text) {
  return checkpoint::hexadecimal(detail::crc32c(std::as_bytes(std::span(text))));
}

/// The values of JSON below `json`, itself first.
void collect(Json& json, std::vector<Json*>& found) {
  found.push_back(&json);
  for (Json& each : json)
    if (each.is_structured())
      collect(each, found);
    else
      found.push_back(&each);
}

/// The header of a safetensors file, and what comes behind it.
std::pair<Json, std::string> parts_of(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return {Json::parse(file.substr(sizeof length, length)), file.substr(sizeof length + length)};
}

std::string with_header(const Json& header, const std::string& data) {
  const std::string text = header.dump();
  const auto length = static_cast<std::uint64_t>(text.size());
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text + data;
}

}  // namespace

std::string Damage::any_name() {
  auto file = sound_.begin();
  std::advance(file, static_cast<std::ptrdiff_t>(below(sound_.size())));
  return file->first;
}

void Damage::change(std::string& bytes, std::string& twin) {
  const std::size_t at = below(bytes.size());
  switch (below(8)) {
    case 0: bytes.resize(at); break;
    case 1: bytes += twin.substr(0, 1 + below(twin.size())); break;
    case 2: bytes.replace(at, 1 + below(64), std::string(1 + below(64), '\0')); break;
    case 3: bytes.erase(at, 1 + below(16)); break;
    case 4: std::swap(bytes, twin); break;
    case 5: bytes = bytes.substr(0, at) + twin.substr(std::min(at, twin.size())); break;
    default:
      for (std::size_t bits = 1 + below(8); bits > 0; --bits)
        bytes[below(bytes.size())] ^= static_cast<char>(1U << below(8));
  }
}

Files Damage::by_accident() {
  Files files = sound_;
  std::string& file = files.at(any_name());
  if (below(50) == 0) {
    files.erase(any_name());
  } else {
    // What the file is mixed up with: the same one of another step, or another one of this step.
    const std::string name = any_name();
    Files others = other_;
    change(file, below(2) == 0 ? others.at(name) : files.at(name));
  }
  return files;
}

Json Damage::strange() {
  switch (below(12)) {
    case 0: return nullptr;
    case 1: return -1;
    case 2: return std::uint64_t{1} << below(64);
    case 3: return (std::uint64_t{1} << below(64)) - 1;
    case 4: return 1e300;
    case 5: return "../../etc/passwd";
    case 6: return std::string(1, static_cast<char>(below(128)));
    case 7: return Json::array();
    case 8: return Json::object();
    case 9: return Json{std::uint64_t{1} << 62, std::uint64_t{1} << 62};
    case 10: return "ffffffff";
    default: {
      Json nested = 1;
      for (std::size_t depth = below(100); depth > 0; --depth) nested = Json::array({nested});
      return nested;
    }
  }
}

void Damage::edit(Json& json) {
  std::vector<Json*> values;
  collect(json, values);
  Json& value = *values[below(values.size())];
  const Json& source = *values[below(values.size())];
  switch (below(5)) {
    case 0: value = Json(source); break;  // a copy: it may be a part of itself
    case 1:
      if (value.is_structured() && !value.empty()) {
        auto member = value.begin();
        std::advance(member, static_cast<std::ptrdiff_t>(below(value.size())));
        value.erase(member);
      }
      break;
    case 2:
      if (value.is_object()) value["x"] = Json(source);
      if (value.is_array()) value.push_back(Json(source));
      break;
    case 3:
      if (value.is_number_integer()) value = value.get<std::int64_t>() + (below(2) == 0 ? 1 : -1);
      break;
    default: value = strange();
  }
}

Files Damage::by_intent() {
  Files files = sound_;
  Json manifest = Json::parse(files.at(checkpoint::kManifestName));
  Json& content = manifest.at("checkpoint");
  const std::string name = any_name();
  std::string& file = files.at(name);
  if (name == checkpoint::kManifestName) {
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) edit(content);
  } else if (name == checkpoint::kIndexName) {
    Json index = Json::parse(file);
    edit(index);
    file = index.dump();
  } else {
    auto [header, data] = parts_of(file);
    edit(header);
    file = with_header(header, data);
  }
  if (name != checkpoint::kManifestName)
    content["files"][name] = {{"size", file.size()}, {"crc32c", checksum(file)}};
  manifest["crc32c"] = checksum(content.dump());
  files.at(checkpoint::kManifestName) = manifest.dump();
  return files;
}

}  // namespace cohort::testing
