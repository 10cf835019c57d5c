#include "device_route.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/json.h"
#include "device/device_runtime.h"

namespace cohort {
namespace {

using Json = nlohmann::json;
using Identities = std::vector<std::string>;

constexpr const char* kOfAnother = "another worker says of its devices what cannot be read";

Identities identities_of(std::span<const Device> devices) {
  Identities identities;
  for (const Device device : devices) identities.push_back(runtime_of(device).identity(device));
  return identities;
}

/// What each worker sees, by rank.
std::vector<Identities> seen_by_all(Bootstrap& bootstrap, std::span<const Device> own) {
  std::vector<Identities> seen;
  for (const std::string& text : bootstrap.exchange(Json(identities_of(own)).dump()))
    seen.push_back(
        read_json<Json>(text, kOfAnother, [](const Json& json) { return json.get<Identities>(); }));
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

namespace {

/// What a worker tells the others about its devices.
struct Report {
  std::vector<std::string> names;       ///< `cuda:0`
  std::vector<std::string> identities;  ///< of GPUs
  std::string refusal;                  ///< why the module cannot serve them; empty where it can
  std::string missing;                  ///< what is wrong with a device that it lacks; empty where it has all
};

std::string text_of(const Report& report) {
  return Json{{"names", report.names},
              {"identities", report.identities},
              {"refusal", report.refusal},
              {"missing", report.missing}}
      .dump();
}

Report report_of(const std::string& text) {
  return read_json<Json>(text, kOfAnother, [](const Json& json) {
    return Report{json.at("names"), json.at("identities"), json.at("refusal"), json.at("missing")};
  });
}

std::string refusal_of(std::span<const Device> devices, CommunicationImplementation implementation) {
  if (implementation == CommunicationImplementation::kRing) return "rings were asked for";
  const DeviceCollectives* const module = linked_device_collectives();
  return module == nullptr ? "this program is not linked with cohort::nccl" : module->why_not(devices);
}

Report own_report(std::span<const Device> devices, CommunicationImplementation implementation) {
  Report report;
  try {
    for (const Device device : devices) {
      report.names.push_back(to_string(device));
      require_exists(device);
      if (!is_cpu(device)) report.identities.push_back(runtime_of(device).identity(device));
    }
    if (!report.identities.empty()) report.refusal = refusal_of(devices, implementation);
  } catch (const Unavailable& error) {
    report.missing = error.what();
  }
  return report;
}

/// The reports of all workers, by rank. Programs without GPU support need not exchange any.
std::vector<Report> reports_of_all(Bootstrap* bootstrap, const Report& own) {
  if (bootstrap == nullptr || bootstrap->size() == 1 || linked_device_runtime() == nullptr) return {own};
  std::vector<Report> reports;
  for (const std::string& text : bootstrap->exchange(text_of(own))) reports.push_back(report_of(text));
  return reports;
}

bool has_gpus(const Report& report) { return !report.identities.empty(); }

/// @throws Unavailable where a worker lacks a device; InvalidArgument where some replicas would be on GPUs
/// and others on CPUs.
void require_uniform(const std::string& who, std::span<const WorkerInfo> workers,
                     std::span<const Report> reports) {
  std::string with_gpus;
  std::string with_cpus;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const Report& report = reports[i];
    const std::string place = reports.size() == 1 ? "" : describe(workers[i]) + ": ";
    if (!report.missing.empty()) throw Unavailable("{}: {}{}", who, place, report.missing);
    const std::string named = fmt::format("{}{}", place, fmt::join(report.names, ", "));
    if (!report.identities.empty() && with_gpus.empty()) with_gpus = named;
    if (report.identities.size() < report.names.size() && with_cpus.empty()) with_cpus = named;
  }
  if (with_gpus.empty() || with_cpus.empty()) return;
  throw InvalidArgument(
      "{}: replicas on GPUs ({}) and on CPUs ({}) cannot be mixed; start the job on hosts with GPUs only, "
      "or name cpu devices on every worker",
      who, with_gpus, with_cpus);
}

/// Says which workers share a GPU; empty if none do.
std::string sharing(std::span<const WorkerInfo> workers, std::span<const Report> reports) {
  std::map<std::pair<std::string, std::string>, int> owners;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    for (std::size_t k = 0; k < reports[i].identities.size(); ++k) {
      const auto [owner, fresh] =
          owners.try_emplace({workers[i].host, reports[i].identities[k]}, workers[i].rank);
      if (fresh) continue;
      return fmt::format("workers {} and {} (host {}) have the same GPU, {}", owner->second, workers[i].rank,
                         workers[i].host, reports[i].identities[k]);
    }
  }
  return {};
}

/// Why the module cannot serve one of the workers; empty if it can serve all.
std::string refusal(std::span<const WorkerInfo> workers, std::span<const Report> reports) {
  for (std::size_t i = 0; i < reports.size(); ++i) {
    if (reports[i].refusal.empty()) continue;
    return reports.size() == 1 ? reports[i].refusal : describe(workers[i]) + ": " + reports[i].refusal;
  }
  return {};
}

int own_rank(const Bootstrap* bootstrap) { return bootstrap == nullptr ? 0 : bootstrap->rank(); }

}  // namespace

DeviceRoute::DeviceRoute(std::string who, Bootstrap* bootstrap, std::vector<Device> devices,
                         CommunicationImplementation implementation)
    : who_(std::move(who)),
      devices_(std::move(devices)),
      must_be_module_(implementation == CommunicationImplementation::kNccl) {
  const Report own = own_report(devices_, implementation);
  const std::vector<Report> reports = reports_of_all(bootstrap, own);
  const std::vector<WorkerInfo> alone(1);
  const std::span<const WorkerInfo> workers = reports.size() == 1 ? alone : bootstrap->workers();
  require_uniform(who_, workers, reports);
  if (!has_gpus(own)) {
    if (!must_be_module_) return;
    logging::warning("{}: NCCL was asked for, but {} is not a GPU; rings are used instead", who_,
                     to_string(devices_.front()));
    return;
  }
  const std::string shared = sharing(workers, reports);
  const std::string refused = refusal(workers, reports);
  if (must_be_module_ && !refused.empty()) throw Unavailable("{}: NCCL was asked for: {}", who_, refused);
  // The module decides, when it connects members, whether they may share a GPU.
  way_ = refused.empty() ? Way::kModule : Way::kHost;
  // Every worker knows all this; one of them logs it.
  if (devices_.size() * workers.size() == 1 || workers.front().rank != own_rank(bootstrap)) return;
  if (!shared.empty() && !refused.empty())
    logging::warning("{}: {}; collectives go through the host. Give each worker GPUs of its own", who_,
                     shared);
  else if (implementation == CommunicationImplementation::kRing)
    logging::info("{}: collectives of GPUs go through the host, by rings, as was asked for", who_);
  else if (!refused.empty())
    logging::warning("{}: collectives of GPUs go through the host, not NCCL: {}", who_, refused);
  else
    logging::info("{}: collectives of GPUs go through {}", who_, linked_device_collectives()->name());
}

std::vector<std::unique_ptr<Communicator>> DeviceRoute::connected(
    std::vector<std::unique_ptr<Communicator>> communicators, std::span<const Device> devices) const {
  if (way_ == Way::kCpu) return communicators;
  if (way_ == Way::kModule && communicators.front()->size() > 1) {
    try {
      return linked_device_collectives()->connect(communicators, devices);
    } catch (const Error& error) {
      if (must_be_module_) throw;
      logging::warning("{}: {}; collectives of GPUs go through the host", who_, error.what());
    }
  }
  return make_staged_communicators(std::move(communicators), devices);
}

std::unique_ptr<Communicator> DeviceRoute::connected(std::unique_ptr<Communicator> communicator) const {
  std::vector<std::unique_ptr<Communicator>> communicators;
  communicators.push_back(std::move(communicator));
  return std::move(connected(std::move(communicators), std::span(devices_).first(1)).front());
}

}  // namespace cohort
