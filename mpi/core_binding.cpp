#include "core_binding.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "device/topology.h"

namespace cohort::mpi {
namespace {

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
