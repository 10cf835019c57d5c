// A coordinator whose workers add ones to variables of all servers, a few calls at a time, while hosts are
// lost. Tasks of `cohort-run --roles`:
//
//   counts FOLDER
//
// FOLDER/calls is how many calls have returned; they go on until there is FOLDER/go. Then the counts must be
// exact. The last line says how long no call has returned.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include <cohort/cohort.h>
#include <cohort/coordinator/cluster_coordinator.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "counters.h"

namespace {

using cohort::Variable;

constexpr std::size_t kCallsAtATime = 8;

void add_one(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) variable.assign_add(1);
}

/// Others see all of it, or nothing.
void write(const std::filesystem::path& file, int number) {
  const std::filesystem::path whole = file.string() + ".new";
  std::ofstream(whole) << number << '\n';
  std::filesystem::rename(whole, file);
}

int coordinate(const cohort::ParameterServerStrategy& strategy, const std::filesystem::path& folder) {
  auto scope = strategy.scope();
  std::vector<Variable> variables;
  for (const char* name : {"a", "b", "c", "d"}) variables.push_back(cohort::test::counter(name));
  const cohort::ClusterCoordinator coordinator(strategy);
  int calls = 0;
  std::deque<cohort::RemoteValue<void>> running;
  std::chrono::duration<double> longest{0};
  auto last = std::chrono::steady_clock::now();
  while (!std::filesystem::exists(folder / "go")) {
    while (running.size() < kCallsAtATime) running.push_back(coordinator.schedule<add_one>(variables));
    running.front().get();
    running.pop_front();
    const auto now = std::chrono::steady_clock::now();
    longest = std::max<std::chrono::duration<double>>(longest, now - last);
    last = now;
    write(folder / "calls", ++calls);
  }
  coordinator.join();
  calls += static_cast<int>(running.size());
  for (const Variable& variable : variables) {
    if (cohort::test::value(variable) == calls) continue;
    fmt::print("{} counts {} of {} calls\n", variable.name(), cohort::test::value(variable), calls);
    return 1;
  }
  fmt::print("{} calls are counted; for {:.3f} s none has returned\n", calls, longest.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw cohort::InvalidArgument("counts needs a folder");
  const cohort::TaskClusterResolver cluster;
  const cohort::ParameterServerStrategy strategy(cluster.place());
  if (strategy.task().type != "chief") return serve(strategy);
  return coordinate(strategy, argv[1]);
} catch (const cohort::Error& error) {
  fmt::print(stderr, "counts: {}\n", error.what());
  return 1;
}
