#include "server/farewells.h"

#include <algorithm>

#include "server/open_commit.h"

namespace cohort::server {
namespace {

/// Farewells are recorded as commits that change nothing, of an incarnation that no process has.
Execution record_of(std::size_t task) { return {0, task + 1}; }

}  // namespace

Farewells::Farewells(Store& store, const remote::TaskPlace& place) : store_(store) {
  for (const remote::Address& address : place.addresses) {
    if (address.task.type != "ps") tasks_.push_back(address.task);
  }
}

bool Farewells::has(std::size_t task) const { return store_.find_commit(record_of(task)).has_value(); }

void Farewells::add(const ClusterTask& task) {
  const auto place = std::ranges::find(tasks_, task);
  if (place == tasks_.end()) return;
  const auto index = static_cast<std::size_t>(place - tasks_.begin());
  if (has(index)) return;
  OpenCommit(store_).make(record_of(index), {});
}

std::ptrdiff_t Farewells::count() const {
  std::ptrdiff_t count = 0;
  for (std::size_t task = 0; task < tasks_.size(); ++task) count += has(task) ? 1 : 0;
  return count;
}

}  // namespace cohort::server
