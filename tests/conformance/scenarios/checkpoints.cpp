#include "checkpoints.h"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>

#include "checkpoint/format/folder.h"

namespace cohort::conformance {

CheckpointFolder::CheckpointFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "cohort-golden-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
  path_ = name;
}

CheckpointFolder::~CheckpointFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> CheckpointFolder::entries() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

Strategy strategy_named(std::string name) {
  std::erase(name, ' ');
  std::erase(name, 'x');
  if (name.starts_with("default")) return get_strategy();
  const int devices = name.back() - '0';
  if (name.starts_with("mirrored")) return MirroredStrategy(cpu_devices(devices));
  if (name.starts_with("central")) return CentralStorageStrategy(cpu_devices(devices), Device::cpu(0));
  throw std::invalid_argument(fmt::format("no strategy {}", name));
}

std::string strategy_of(const Record& record) {
  const std::size_t end = record.id.rfind('/');
  const std::size_t begin = record.id.rfind('/', end - 1) + 1;
  return record.id.substr(begin, end - begin);
}

std::string case_of(const Record& record) { return record.id.substr(record.id.rfind('/') + 1); }

Json keys_of(const std::string& path) {
  Json keys = Json::array();
  for (const auto& [name, entry] : checkpoint::read_manifest(path).values)
    keys.push_back({name, entry.shape.extents()});
  return keys;
}

Tensor half_rows(std::int64_t rows) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < 2; ++column)
      values.push_back(static_cast<double>(2 * row + column) + 0.5);
  return tensor(std::move(values), {rows, 2});
}

Json verdict_of(const std::function<void()>& assertion) {
  try {
    assertion();
  } catch (const Error&) {
    return "AssertionError";
  }
  return "ok";
}

}  // namespace cohort::conformance
