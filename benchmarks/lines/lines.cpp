#include "lines/lines.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <exception>
#include <memory>
#include <thread>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>

#include "collective/node/line_counter.h"
#include "collective/node_communicators.h"
#include "device/machine.h"
#include "environment.h"

namespace cohort::bench {
namespace {

/// Medians of nviennot/core-to-core-latency (README and its results, MIT licence): between cores that share a
/// cache, of one socket, of two sockets. Of lines in a row, ten are taken to be under way at a time.
struct Latencies {
  std::string_view processor;
  double same_cache;
  double same_socket;
  double other_socket;

  [[nodiscard]] node::LineCosts costs() const {
    constexpr double kUnderWay = 10;
    const std::array line{same_cache, same_socket, same_socket, other_socket};
    std::array<double, kLevels.size()> in_row{};
    std::ranges::transform(line, in_row.begin(), [](double ns) { return ns / kUnderWay; });
    return {line, in_row};
  }
};

const Latencies& latencies_of(LatencyTable table) {
  static constexpr Latencies kEpyc{"two AMD EPYC 7R13: 23, 107 and 197 ns", 23, 107, 197};
  static constexpr Latencies kXeon{"two Intel Xeon Platinum 8375C: 51, 51 and 108 ns", 51, 51, 108};
  return table == LatencyTable::kEpyc ? kEpyc : kXeon;
}

struct LineCase {
  CollectiveKind kind;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array kCases{
    LineCase{CollectiveKind::kBarrier, "barrier", 0},
    LineCase{CollectiveKind::kAllReduce, "all_reduce", 4},
    LineCase{CollectiveKind::kAllReduce, "all_reduce", 56},
    LineCase{CollectiveKind::kAllReduce, "all_reduce", 1024},
    LineCase{CollectiveKind::kAllReduce, "all_reduce", 8192},
    LineCase{CollectiveKind::kAllReduce, "all_reduce", std::size_t{64} << 10},
    LineCase{CollectiveKind::kAllReduce, "all_reduce", std::size_t{1} << 20},
    LineCase{CollectiveKind::kReduceScatter, "reduce_scatter", std::size_t{64} << 10},
    LineCase{CollectiveKind::kBroadcast, "broadcast", 56},
    LineCase{CollectiveKind::kBroadcast, "broadcast", 8192},
    LineCase{CollectiveKind::kAllGather, "all_gather", 56},
    LineCase{CollectiveKind::kAllGather, "all_gather", 1024},
    LineCase{CollectiveKind::kAllToAll, "all_to_all", std::size_t{64} << 10},
};

/// The cores of members that are spread evenly over the machine.
std::vector<LevelGroups> spread(const Machine& machine, int members) {
  const std::size_t cores = machine.cores().size();
  const auto count = static_cast<std::size_t>(members);
  std::vector<LevelGroups> groups;
  for (std::size_t member = 0; member < count; ++member)
    groups.push_back(machine.cores()[member * cores / count % cores].group);
  return groups;
}

/// One member's calls; `restart` lets all begin the call that counts together.
void call(Communicator& communicator, const LineCase& what, const std::function<void()>& restart) {
  const auto elements = static_cast<std::int64_t>(what.bytes / sizeof(float));
  const auto members = static_cast<std::int64_t>(communicator.size());
  const bool gathers = what.kind == CollectiveKind::kAllGather;
  const bool scatters = what.kind == CollectiveKind::kReduceScatter;
  const Tensor own = Tensor::zeros({elements}, DType::kFloat32);
  const Tensor other = Tensor::zeros({gathers    ? elements * members
                                      : scatters ? elements / members
                                                 : elements},
                                     DType::kFloat32);
  // The first calls set up what later ones use.
  constexpr int kCalls = 3;
  for (int number = 0; number < kCalls; ++number) {
    restart();
    switch (what.kind) {
      case CollectiveKind::kAllReduce: communicator.all_reduce(own, ReduceOp::kSum); break;
      case CollectiveKind::kReduceScatter: communicator.reduce_scatter(own, other, ReduceOp::kSum); break;
      case CollectiveKind::kBroadcast: communicator.broadcast(own, 0); break;
      case CollectiveKind::kAllGather: communicator.all_gather(own, other); break;
      case CollectiveKind::kAllToAll: communicator.all_to_all(own, other); break;
      default: communicator.barrier();
    }
  }
}

node::LineCounts count(const LineCase& what, const std::vector<LevelGroups>& groups,
                       const node::LineCosts& costs, int most_members_without_tree) {
  const auto counter = std::make_shared<node::LineCounter>(groups, costs);
  NodeGroupOptions options;
  options.members = static_cast<int>(groups.size());
  options.levels = {most_members_without_tree, groups, counter};
  const auto communicators = make_node_communicators(options);
  std::barrier all_between_calls(std::ssize(groups), [&]() noexcept { counter->restart(); });
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators) {
    threads.emplace_back([&] { call(*communicator, what, [&] { all_between_calls.arrive_and_wait(); }); });
  }
  for (std::thread& thread : threads) thread.join();
  return counter->counts();
}

}  // namespace

LinesResult measure(const LinesOptions& options, const CommandContext&) {
  const Machine machine = Machine::read(options.topology);
  const int members = options.members == 0 ? static_cast<int>(machine.cores().size()) : options.members;
  const Latencies& latencies = latencies_of(options.latencies);
  const std::vector<LevelGroups> groups = spread(machine, members);
  LinesResult result{without_home(options.topology, home_folder()), members, latencies.processor, {}};
  for (const LineCase& what : kCases) {
    for (const bool by_levels : {false, true}) {
      const node::LineCounts counts = count(what, groups, latencies.costs(), by_levels ? 1 : members);
      const double contribution = std::max<double>(1, static_cast<double>(what.bytes));
      result.rows.push_back({what.name, by_levels ? "levels" : "flat", what.bytes, counts.chain,
                             counts.chain_far, static_cast<double>(counts.most_read) / contribution,
                             static_cast<double>(counts.between_sockets) / contribution,
                             counts.nanoseconds / 1000});
    }
  }
  return result;
}

}  // namespace cohort::bench
