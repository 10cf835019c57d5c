#include "session_start.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/base/version.h>

#include "agreement.h"
#include "cluster/agreement.h"
#include "cluster/launcher.h"
#include "device/machine.h"

namespace cohort::mpi {
namespace {

/// What a process says of itself. The layout stays as it is, so that different versions of
/// Cohort can read each other's records and say that they differ.
struct Record {
  std::array<char, 64> version{};
  std::array<char, 256> host{};
  std::int64_t pid = 0;
  std::int32_t lowest_on_node = 0;
  std::int32_t workers_per_node = 0;
  std::int32_t cpu_devices = 1;
  // What the launcher's variables say; -1: nothing.
  std::int32_t launcher_rank = -1;
  std::int32_t launcher_size = -1;
  std::array<char, 32> launcher{};
  std::array<char, 32> size_variable{};
  std::int32_t gpus_and_one = 0;  ///< in what was padding, so that 0 has to mean: no variable names them
};

static_assert(sizeof(Record) == 416);

constexpr int kMostGpus = 1 << 20;  // as many as the record can tell apart, whatever a variable says

template <std::size_t kSize>
void put(std::array<char, kSize>& field, const std::string& text) {
  text.copy(field.data(), kSize - 1);
}

Record own_record(MPI_Comm world, const Config& settings, const std::optional<LauncherPlace>& place) {
  Record record;
  put(record.version, COHORT_VERSION);
  put(record.host, processor_name());
  record.pid = ::getpid();
  const Comm node = Comm::sharing_memory(world);
  record.workers_per_node = settings.workers_per_node();
  record.cpu_devices = settings.cpu_devices();
  record.lowest_on_node = all_reduce_min(comm_rank(world), node.get());
  if (const std::optional<int> gpus = visible_gpus()) record.gpus_and_one = std::min(*gpus, kMostGpus) + 1;
  if (place) {
    record.launcher_rank = place->rank;
    record.launcher_size = place->size.value_or(-1);
    put(record.launcher, place->launcher);
    put(record.size_variable, place->size_variable);
  }
  return record;
}

std::optional<LauncherPlace> place_of(const Record& record) {
  if (record.launcher_rank < 0) return std::nullopt;
  LauncherPlace place{record.launcher.data(), record.size_variable.data(), record.launcher_rank};
  if (record.launcher_size >= 0) place.size = record.launcher_size;
  return place;
}

/// What else a process says, once all are known to run the same version.
struct Terms {
  double heartbeat_seconds = 0;
  double silence_seconds = 0;
  std::int64_t complains = 0;
};

std::vector<Terms> gather_terms(MPI_Comm world, const StartSettings& settings) {
  using Seconds = std::chrono::duration<double>;
  const Terms own{Seconds(settings.values.heartbeat()).count(), Seconds(settings.values.silence()).count(),
                  settings.complaint.empty() ? 0 : 1};
  std::vector<Terms> terms(static_cast<std::size_t>(comm_size(world)));
  all_gather(&own, terms.data(), sizeof own, MPI_BYTE, world);
  return terms;
}

/// What all workers have to complain of, by rank.
std::vector<std::string> gather_complaints(MPI_Comm world, const std::string& own) {
  using Text = std::array<char, 1024>;
  Text text{};
  put(text, own);
  std::vector<Text> texts(static_cast<std::size_t>(comm_size(world)));
  all_gather(&text, texts.data(), sizeof text, MPI_BYTE, world);
  std::vector<std::string> complaints;
  complaints.reserve(texts.size());
  for (const Text& each : texts) complaints.emplace_back(each.data());
  return complaints;
}

/// Each of them has up to 63 connections.
constexpr std::size_t kMostWorkers = 64;
/// No other message over the communicator of a session has it.
constexpr int kContactTag = 2;

/// Where a process may run, as it tells the others.
struct Mask {
  bool to_be_bound = false;
  std::vector<int> cores;  ///< empty: it could not find out
};

std::string to_blob(const Mask& mask) {
  return fmt::format("{} {}", mask.to_be_bound ? 1 : 0, fmt::join(mask.cores, " "));
}

Mask to_mask(const std::string& blob) {
  Mask mask;
  std::istringstream text(blob);
  text >> mask.to_be_bound;
  mask.cores.assign(std::istream_iterator<int>(text), std::istream_iterator<int>());
  return mask;
}

/// One line for all hosts, since a job that has too few cores on one often has on many.
void say_that_cores_are_shared(std::span<const WorkerInfo> workers, std::span<const std::string> blobs) {
  struct Host {
    std::set<int> cores;
    std::size_t workers = 0;
  };
  std::map<std::string, Host> hosts;
  for (const WorkerInfo& worker : workers) {
    const Mask mask = to_mask(blobs[static_cast<std::size_t>(worker.rank)]);
    Host& host = hosts[worker.host];
    host.cores.insert(mask.cores.begin(), mask.cores.end());
    if (!mask.cores.empty()) ++host.workers;
  }
  std::erase_if(hosts, [](const auto& each) { return each.second.workers <= each.second.cores.size(); });
  if (hosts.empty()) return;
  const auto& [name, host] = *hosts.begin();
  const std::string others = hosts.size() == 1 ? ""
                                               : fmt::format(", on {} other host{} too", hosts.size() - 1,
                                                             hosts.size() == 2 ? "" : "s");
  logging::warning(
      "{} workers on {} core{} of host {}{}: they take turns and run slower. Start fewer, or look at the "
      "launcher's binding with cohort-info --report-bindings; COHORT_LOG_LEVEL=error silences warnings",
      host.workers, host.cores.size(), host.cores.size() == 1 ? "" : "s", name, others);
}

}  // namespace

std::vector<WorkerInfo> discover_workers(MPI_Comm world, const StartSettings& settings,
                                         const std::optional<LauncherPlace>& place) {
  const Record own = own_record(world, settings.values, place);
  std::vector<Record> records(static_cast<std::size_t>(comm_size(world)));
  all_gather(&own, records.data(), sizeof own, MPI_BYTE, world);

  std::vector<WorkerInfo> workers;
  std::vector<std::string> versions;
  std::vector<int> devices;
  std::vector<std::optional<int>> gpus;
  std::vector<std::optional<LauncherPlace>> places;
  std::vector<std::string> machines;
  for (const Record& record : records) {
    WorkerInfo worker;
    worker.rank = static_cast<int>(workers.size());
    machines.push_back(std::to_string(record.lowest_on_node));
    worker.host = record.host.data();
    worker.pid = record.pid;
    workers.push_back(std::move(worker));
    versions.emplace_back(record.version.data());
    devices.push_back(record.cpu_devices);
    gpus.push_back(record.gpus_and_one > 0 ? std::optional(record.gpus_and_one - 1) : std::nullopt);
    places.push_back(place_of(record));
  }
  // The chief's setting counts, so that all number the nodes alike.
  number_nodes(workers, machines, records.front().workers_per_node);
  require_same_version(workers, versions);
  const std::vector<Terms> terms = gather_terms(world, settings);
  if (std::ranges::any_of(terms, [](const Terms& each) { return each.complains != 0; }))
    require_right_settings(workers, gather_complaints(world, settings.complaint));
  require_places_of_launcher(workers, places);
  require_same_devices(workers, devices);
  std::vector<std::string> watches;
  watches.reserve(terms.size());
  for (const Terms& each : terms)
    watches.push_back(fmt::format("a heartbeat of {:g} s and a silence of {:g} s", each.heartbeat_seconds,
                                  each.silence_seconds));
  require_same_watch(workers, watches);
  if (const std::string warning = warning_of_other_gpus(workers, gpus);
      !warning.empty() && comm_rank(world) == 0)
    logging::warning("{}", warning);
  return workers;
}

void make_first_contacts(MPI_Comm comm, std::span<const WorkerInfo> workers) {
  if (workers.size() > kMostWorkers) return;
  const auto rank = static_cast<std::size_t>(comm_rank(comm));
  std::vector<MPI_Request> sends;
  const auto greet = [&](const WorkerInfo& other) {
    sends.push_back(isend(nullptr, 0, MPI_BYTE, other.rank, kContactTag, comm));
  };
  const auto hear = [&](const WorkerInfo& other) {
    recv(nullptr, 0, MPI_BYTE, other.rank, kContactTag, comm);
  };
  const auto is_elsewhere = [&](const WorkerInfo& other) { return other.node != workers[rank].node; };

  for (const WorkerInfo& other : workers.subspan(rank))
    if (is_elsewhere(other)) greet(other);
  for (const WorkerInfo& other : workers.first(rank)) {
    if (!is_elsewhere(other)) continue;
    hear(other);
    greet(other);
  }
  for (const WorkerInfo& other : workers.subspan(rank))
    if (is_elsewhere(other)) hear(other);
  for (MPI_Request& send : sends) {
    while (!test(send)) std::this_thread::yield();
  }
}

void bind_cores(WorkerGroup& everyone, bool wanted) {
  const std::vector<std::string> blobs = everyone.exchange(to_blob({wanted, allowed_core_numbers()}));
  std::vector<std::vector<int>> allowed;
  std::optional<std::size_t> own;
  for (const WorkerInfo& worker : everyone.workers()) {
    if (worker.host != everyone.self().host) continue;
    const Mask mask = to_mask(blobs[static_cast<std::size_t>(worker.rank)]);
    if (!mask.to_be_bound || mask.cores.empty()) continue;
    if (worker.rank == everyone.rank()) own = allowed.size();
    allowed.push_back(mask.cores);
  }
  if (everyone.rank() == 0) say_that_cores_are_shared(everyone.workers(), blobs);
  if (!own) return;
  // Where workers outnumber their cores nobody is bound, and reading the machine, which takes each of them
  // milliseconds, would tell nothing.
  const auto sharers = std::ranges::count(allowed, allowed[*own]);
  if (sharers == 1 || sharers > std::ssize(allowed[*own])) return;
  try {
    const std::vector<int> share = share_of_cores(allowed, *own, allowed_cores());
    if (!share.empty()) pin_current_thread(share);
  } catch (const Unavailable& error) {
    logging::warning("this worker shares its cores with others: {}", error.what());
  }
}

}  // namespace cohort::mpi
