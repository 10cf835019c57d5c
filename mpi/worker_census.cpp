#include "worker_census.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>
#include <cohort/base/version.h>

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
};

template <std::size_t kSize>
void put(std::array<char, kSize>& field, const std::string& text) {
  text.copy(field.data(), kSize - 1);
}

Record own_record(MPI_Comm world, int workers_per_node) {
  Record record;
  put(record.version, COHORT_VERSION);
  put(record.host, processor_name());
  record.pid = ::getpid();
  const Comm node = Comm::sharing_memory(world);
  record.workers_per_node = workers_per_node;
  record.lowest_on_node = all_reduce_min(comm_rank(world), node.get());
  return record;
}

}  // namespace

std::vector<WorkerInfo> take_census(MPI_Comm world, int workers_per_node) {
  const Record own = own_record(world, workers_per_node);
  std::vector<Record> records(static_cast<std::size_t>(comm_size(world)));
  all_gather(&own, records.data(), sizeof own, MPI_BYTE, world);

  std::vector<WorkerInfo> workers;
  std::vector<std::string> versions;
  std::map<std::pair<std::int32_t, int>, int> node_numbers;  // by lowest rank, which is met first, and group
  std::map<std::int32_t, int> counted;
  // The chief's setting counts, so that all number the nodes alike.
  const int largest = records.front().workers_per_node;
  const int group_size = largest > 0 ? largest : std::numeric_limits<int>::max();
  for (const Record& record : records) {
    WorkerInfo worker;
    worker.rank = static_cast<int>(workers.size());
    const int place = counted[record.lowest_on_node]++;
    const std::pair group(record.lowest_on_node, place / group_size);
    worker.node = node_numbers.try_emplace(group, static_cast<int>(node_numbers.size())).first->second;
    worker.local_rank = place % group_size;
    worker.host = record.host.data();
    worker.pid = record.pid;
    workers.push_back(std::move(worker));
    versions.emplace_back(record.version.data());
  }
  require_same_version(workers, versions);
  return workers;
}

void require_same_version(std::span<const WorkerInfo> workers, std::span<const std::string> versions) {
  std::map<std::string, int> votes;
  for (const std::string& version : versions) ++votes[version];
  if (votes.size() <= 1) return;
  const auto most = std::max_element(votes.begin(), votes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::string> odd;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions[i] != most->first)
      odd.push_back(fmt::format("{} runs {}", describe(workers[i]), versions[i]));
  }
  throw InvalidArgument(
      "all workers must run the same version of Cohort, but {}, while the other {} run {}. Rebuild the "
      "program, or look "
      "at the library path on those hosts.",
      fmt::join(odd, ", "), most->second, most->first);
}

}  // namespace cohort::mpi
