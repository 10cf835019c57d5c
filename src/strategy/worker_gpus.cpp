#include "worker_gpus.h"

#include <algorithm>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "device/device_runtime.h"

namespace cohort {
namespace {

using Identities = std::vector<std::string>;

Identities identities_of(std::span<const Device> devices) {
  Identities identities;
  for (const Device device : devices) identities.push_back(runtime_of(device).identity(device));
  return identities;
}

/// What each worker sees, by rank.
std::vector<Identities> seen_by_all(Bootstrap& bootstrap, std::span<const Device> own) {
  std::vector<Identities> seen;
  for (const std::string& text : bootstrap.exchange(nlohmann::json(identities_of(own)).dump()))
    seen.push_back(nlohmann::json::parse(text).get<Identities>());
  return seen;
}

void require_on_every_host(std::span<const WorkerInfo> workers, std::span<const Identities> seen) {
  const auto without = std::ranges::find_if(seen, &Identities::empty);
  const auto with = std::ranges::find_if_not(seen, &Identities::empty);
  if (without == seen.end() || with == seen.end()) return;
  throw Unavailable(
      "{} sees no GPU, but {} does; start the job on hosts with GPUs only, give each worker one, or name cpu "
      "devices on every worker",
      describe(workers[static_cast<std::size_t>(without - seen.begin())]),
      describe(workers[static_cast<std::size_t>(with - seen.begin())]));
}

bool overlap(const Identities& a, const Identities& b) {
  return std::ranges::any_of(
      a, [&](const std::string& identity) { return std::ranges::count(b, identity) > 0; });
}

/// An equal share for each worker of the node, in order of local ranks; if there are fewer GPUs than workers,
/// workers share them in turn.
std::vector<Device> share_of(std::span<const Device> devices, int local_rank, int local_workers) {
  const auto count = static_cast<int>(devices.size());
  if (count < local_workers) return {devices[static_cast<std::size_t>(local_rank % count)]};
  const std::size_t share = devices.size() / static_cast<std::size_t>(local_workers);
  const auto own = devices.subspan(static_cast<std::size_t>(local_rank) * share, share);
  return {own.begin(), own.end()};
}

}  // namespace

std::vector<Device> gpus_of_this_worker(Bootstrap* bootstrap) {
  if (linked_device_runtime() == nullptr) return {};
  std::vector<Device> devices = gpu_devices();
  if (bootstrap == nullptr || bootstrap->size() == 1) return devices;
  const std::span<const WorkerInfo> workers = bootstrap->workers();
  const WorkerInfo& self = bootstrap->self();
  const std::vector<Identities> seen = seen_by_all(*bootstrap, devices);
  require_on_every_host(workers, seen);
  if (devices.empty()) return {};

  int local_workers = 0;
  bool shares = false;
  bool differs = false;
  const Identities& own = seen[static_cast<std::size_t>(self.rank)];
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    if (workers[rank].node != self.node) continue;
    ++local_workers;
    if (workers[rank].rank == self.rank) continue;
    shares = shares || overlap(seen[rank], own);
    differs = differs || seen[rank] != own;
  }
  if (!shares) return devices;
  if (!differs) return share_of(devices, self.local_rank, local_workers);
  throw Unavailable(
      "the workers of host {} see different but overlapping sets of GPUs; give each of them GPUs of its own, "
      "or all of them the same list with CUDA_VISIBLE_DEVICES, or name the devices",
      self.host);
}

}  // namespace cohort
