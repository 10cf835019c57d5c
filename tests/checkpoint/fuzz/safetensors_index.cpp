#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <cohort/base/error.h>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/safetensors.h"
#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  try {
    const auto files = checkpoint::parse_index(input, "index");
    std::map<std::string_view, std::string_view> written;
    for (const auto& [tensor, file] : files) {
      if (file.find('/') != std::string::npos) throw std::runtime_error("an index that leads elsewhere");
      written.emplace(tensor, file);
    }
    if (checkpoint::parse_index(checkpoint::safetensors_index(0, written), "index") != files)
      throw std::runtime_error("an index that JSON changes");
  } catch (const DataLoss&) {
    return;
  }
}

}  // namespace cohort::fuzz
