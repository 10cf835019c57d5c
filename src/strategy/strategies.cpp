// The strategies that programs choose by what they run on: the devices of each, and how its replicas are
// connected.
#include <utility>

#include <cohort/base/config.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/device/device.h>
#include <cohort/strategy/central_storage_strategy.h>
#include <cohort/strategy/mirrored_strategy.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>
#include <cohort/strategy/one_device_strategy.h>
#include <cohort/strategy/reduction_to_one_device.h>

#include "device_route.h"

namespace cohort {

OneDeviceStrategy::OneDeviceStrategy(Device device)
    : Strategy(StrategyExtended::make(
          {.name = "OneDeviceStrategy", .devices = {device}, .parameter_device = device, .connect = [] {
             return make_thread_communicators(1);
           }})) {}

namespace {

StrategyLayout mirrored_layout(std::vector<Device> devices, const CommunicationOptions& options,
                               std::shared_ptr<CrossDeviceOps> cross_device_ops) {
  if (devices.empty()) devices = gpu_devices();
  if (devices.empty()) devices = cpu_devices(config().cpu_devices());
  const auto replicas = static_cast<int>(devices.size());
  return {.name = "MirroredStrategy",
          .devices = std::move(devices),
          .cross_device_ops = std::move(cross_device_ops),
          .connect = [=] { return make_thread_communicators(replicas, options); }};
}

}  // namespace

MirroredStrategy::MirroredStrategy(std::vector<Device> devices, const CommunicationOptions& options,
                                   std::shared_ptr<CrossDeviceOps> cross_device_ops)
    : Strategy(
          StrategyExtended::make(mirrored_layout(std::move(devices), options, std::move(cross_device_ops)))) {
}

namespace {

StrategyLayout central_layout(std::vector<Device> compute_devices, std::optional<Device> parameter_device,
                              const CommunicationOptions& options) {
  if (compute_devices.empty()) compute_devices = gpu_devices();
  if (compute_devices.empty()) compute_devices = cpu_devices(1);
  const bool alone = compute_devices.size() == 1;
  const Device parameters = parameter_device.value_or(alone ? compute_devices.front() : Device());
  const auto replicas = static_cast<int>(compute_devices.size());
  return {.name = "CentralStorageStrategy",
          .devices = std::move(compute_devices),
          .parameter_device = parameters,
          .cross_device_ops = std::make_shared<ReductionToOneDevice>(
              ReductionToOneDeviceOptions{.reduce_to_device = parameters}),
          .connect = [=] { return make_thread_communicators(replicas, options); }};
}

}  // namespace

CentralStorageStrategy::CentralStorageStrategy(std::vector<Device> compute_devices,
                                               std::optional<Device> parameter_device,
                                               const CommunicationOptions& options)
    : Strategy(
          StrategyExtended::make(central_layout(std::move(compute_devices), parameter_device, options))) {}

namespace {

constexpr const char* kMultiWorkerName = "MultiWorkerMirroredStrategy";

StrategyLayout layout_of(Bootstrap* bootstrap, const CommunicationOptions& options,
                         std::vector<Device> devices) {
  if (devices.empty()) devices = gpus_of_this_worker(bootstrap);
  if (devices.empty()) devices = cpu_devices(1);
  const auto replicas = static_cast<int>(devices.size());
  if (bootstrap == nullptr || bootstrap->size() == 1) {
    return {.name = kMultiWorkerName, .devices = std::move(devices), .connect = [=] {
              return make_thread_communicators(replicas, options);
            }};
  }
  StrategyLayout layout{.name = kMultiWorkerName,
                        .devices = std::move(devices),
                        .worker = bootstrap->rank(),
                        .workers = bootstrap->size(),
                        .bootstrap = bootstrap,
                        .connect = [=] { return bootstrap->make_communicators(options, replicas); }};
  if (replicas > 1) layout.connect_workers = [=] { return bootstrap->make_communicator(options); };
  return layout;
}

/// The bootstrap that the resolver's cluster needs; null for a process on its own.
Bootstrap* bootstrap_of(const ClusterResolver& resolver) {
  const ClusterSpec spec = resolver.cluster_spec();
  if (spec.empty()) return nullptr;
  const auto type = resolver.task_type();
  const auto id = resolver.task_id();
  if (!type || !id) {
    throw InvalidArgument(
        "{}: the cluster resolver describes a cluster but not this process's place in it; it must "
        "give both task_type and task_id",
        kMultiWorkerName);
  }
  if (*type != "chief" && *type != "worker") {
    throw InvalidArgument(
        "{}: task type '{}' takes no part in synchronous training; only chief and worker do",
        kMultiWorkerName, *type);
  }
  static_cast<void>(spec.task_address(*type, *id));  // throws unless the task exists
  int workers = 0;
  for (const char* job : {"chief", "worker"}) workers += spec.has_job(job) ? spec.num_tasks(job) : 0;
  Bootstrap* bootstrap = resolver.bootstrap();
  if (bootstrap == nullptr) {
    if (workers == 1) return nullptr;
    throw Unavailable(
        "{}: the cluster resolver describes {} workers but gives no way to reach them; use a resolver "
        "made from an mpi::Session, and start the program with mpirun or srun",
        kMultiWorkerName, workers);
  }
  if (bootstrap->size() != workers) {
    throw InvalidArgument("{}: the cluster resolver describes {} workers, but the job has {}",
                          kMultiWorkerName, workers, bootstrap->size());
  }
  return bootstrap;
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(Bootstrap& bootstrap,
                                                         const CommunicationOptions& options,
                                                         std::vector<Device> devices)
    : Strategy(StrategyExtended::make(layout_of(&bootstrap, options, std::move(devices)))) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const ClusterResolver& resolver,
                                                         const CommunicationOptions& options,
                                                         std::vector<Device> devices)
    : Strategy(StrategyExtended::make(layout_of(bootstrap_of(resolver), options, std::move(devices)))) {}

}  // namespace cohort
