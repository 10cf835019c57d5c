#include "layout.h"

#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>

namespace cohort::conformance {
namespace {

Strategy make_strategy(std::string_view prefix, Bootstrap* bootstrap) {
  if (prefix.empty() || prefix == "default1" || prefix == kTrainingLayout || is_task_layout(prefix))
    return get_strategy();
  if (prefix == "onedevice1") return OneDeviceStrategy(Device::cpu(0));
  if (prefix == "mirrored2") return MirroredStrategy(cpu_devices(2));
  if (prefix == "mirrored3") return MirroredStrategy(cpu_devices(3));
  if (prefix == "central2") return CentralStorageStrategy(cpu_devices(2), Device::cpu(0));
  if (prefix == "mwms2" && bootstrap != nullptr) return MultiWorkerMirroredStrategy(*bootstrap);
  throw std::invalid_argument(fmt::format("no layout {}", prefix));
}

}  // namespace

Layout::Layout(std::string_view prefix, Bootstrap* bootstrap)
    : prefix_(prefix),
      bootstrap_(prefix == "mwms2" ? bootstrap : nullptr),
      strategy_(make_strategy(prefix, bootstrap)) {}

bool Layout::exists(std::string_view prefix) { return is_device_layout(prefix) || prefix == kWorkersLayout; }

std::vector<int> Layout::local_ids() const {
  std::vector<int> ids(static_cast<std::size_t>(strategy_.extended().local_replicas()));
  std::iota(ids.begin(), ids.end(), strategy_.extended().first_replica_id());
  return ids;
}

}  // namespace cohort::conformance
