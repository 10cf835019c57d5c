#include "checkpoint/format/manifest.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/crc32c.h"
#include "fuzz_one.h"

namespace cohort::fuzz {
namespace {

/// A manifest with this content and its checksum, behind which nothing would be reached.
std::string with_checksum(std::string_view input) {
  const auto content = nlohmann::json::parse(input, nullptr, false);
  if (content.is_discarded()) return std::string(input);
  try {
    const std::string text = content.dump();
    return nlohmann::json{{"checkpoint", content},
                          {"crc32c", checkpoint::hexadecimal(detail::crc32c(std::as_bytes(std::span(text))))}}
        .dump();
  } catch (const nlohmann::json::exception&) {
    return std::string(input);
  }
}

}  // namespace

void fuzz_one(std::string_view input) {
  try {
    const auto manifest = checkpoint::parse_manifest(with_checksum(input), "manifest");
    const std::string text = checkpoint::to_json(manifest);
    if (checkpoint::to_json(checkpoint::parse_manifest(text, "manifest")) != text)
      throw std::runtime_error("a manifest that JSON changes");
  } catch (const DataLoss&) {
    return;
  } catch (const Unimplemented&) {
    return;
  }
}

}  // namespace cohort::fuzz
