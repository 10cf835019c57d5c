#include "core_binding.h"

#include <algorithm>
#include <iterator>
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

void say_that_cores_are_shared(const std::string& host, std::span<const Mask> masks) {
  std::set<int> cores;
  for (const Mask& mask : masks) cores.insert(mask.cores.begin(), mask.cores.end());
  const auto workers = std::ranges::count_if(masks, [](const Mask& mask) { return !mask.cores.empty(); });
  if (workers <= std::ssize(cores)) return;
  logging::warning(
      "the {} workers of host {} share {} core{}: those that wait yield to the others, but all are slower. "
      "Start fewer, or look at the launcher's binding with cohort-info --report-bindings",
      workers, host, cores.size(), cores.size() == 1 ? "" : "s");
}

}  // namespace

void bind_cores(WorkerGroup& everyone, bool wanted) {
  const std::vector<std::string> blobs = everyone.exchange(to_blob({wanted, allowed_core_numbers()}));
  std::vector<Mask> of_host;
  std::vector<std::vector<int>> allowed;
  std::optional<std::size_t> own;
  bool is_first = false;
  for (const WorkerInfo& worker : everyone.workers()) {
    if (worker.host != everyone.self().host) continue;
    of_host.push_back(to_mask(blobs[static_cast<std::size_t>(worker.rank)]));
    const Mask& mask = of_host.back();
    const bool is_self = worker.rank == everyone.rank();
    if (is_self) is_first = of_host.size() == 1;
    if (!mask.to_be_bound || mask.cores.empty()) continue;
    if (is_self) own = allowed.size();
    allowed.push_back(mask.cores);
  }
  if (is_first) say_that_cores_are_shared(everyone.self().host, of_host);
  if (!own || std::ranges::count(allowed, allowed[*own]) == 1) return;
  try {
    const std::vector<int> share = share_of_cores(allowed, *own, allowed_cores());
    if (!share.empty()) pin_current_thread(share);
  } catch (const Unavailable& error) {
    logging::warning("this worker shares its cores with others: {}", error.what());
  }
}

}  // namespace cohort::mpi
