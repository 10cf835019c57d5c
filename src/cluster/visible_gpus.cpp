#include "visible_gpus.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include <cohort/base/error.h>

namespace cohort {
namespace {

/// Nothing for a text that is not a number: only a warning depends on it.
std::optional<int> number_of_slurm(const Environment& variables) {
  try {
    return number_in(variables, "SLURM_GPUS_ON_NODE");
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

bool is_gpu(std::string_view entry) {
  if (entry.starts_with("GPU-") || entry.starts_with("MIG-")) return true;
  return !entry.empty() && std::ranges::all_of(entry, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<std::vector<std::string>> listed_gpus(const Environment& variables) {
  const auto found = variables.find("CUDA_VISIBLE_DEVICES");
  if (found == variables.end()) return std::nullopt;
  const std::string_view list = found->second;
  std::vector<std::string> gpus;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view entry = list.substr(begin, end - begin);
    if (!is_gpu(entry)) break;
    gpus.emplace_back(entry);
    begin = end + 1;
  }
  return gpus;
}

std::optional<int> visible_gpus(const Environment& variables) {
  const auto listed = listed_gpus(variables);
  return listed ? static_cast<int>(listed->size()) : number_of_slurm(variables);
}

}  // namespace cohort
