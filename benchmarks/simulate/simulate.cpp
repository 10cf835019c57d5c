#include "simulate/simulate.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <cohort/base/error.h>

#include "collective/network/cost_model.h"
#include "errors.h"
#include "simulation/fault_schedule.h"
#include "simulation/simulated_cluster.h"

namespace cohort::bench {
namespace {

using simulation::SimulatedCluster;
using simulation::SimulatedRun;

/// As much of each message is copied as the members need to agree on a call and on its tuning: a roll call
/// with all contributions, and its summaries.
constexpr std::size_t kCopiedBytes = network::kPiggybackBytes + 64;

struct SimulatedCase {
  CollectiveKind kind;
  std::size_t bytes;
};

constexpr std::array kCases{SimulatedCase{CollectiveKind::kBarrier, 0},
                            SimulatedCase{CollectiveKind::kAllReduce, 4},
                            SimulatedCase{CollectiveKind::kAllReduce, std::size_t{4} << 10},
                            SimulatedCase{CollectiveKind::kAllReduce, std::size_t{64} << 10},
                            SimulatedCase{CollectiveKind::kAllReduce, std::size_t{1} << 20},
                            SimulatedCase{CollectiveKind::kReduce, std::size_t{64} << 10},
                            SimulatedCase{CollectiveKind::kBroadcast, std::size_t{64} << 10},
                            SimulatedCase{CollectiveKind::kAllGather, 64},
                            SimulatedCase{CollectiveKind::kReduceScatter, 64},
                            SimulatedCase{CollectiveKind::kGather, 64},
                            SimulatedCase{CollectiveKind::kScatter, 64},
                            SimulatedCase{CollectiveKind::kAllToAll, 64}};

/// Whether a call of the kind has a block for each member.
bool moves_blocks(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
    case CollectiveKind::kAllToAll: return true;
    default: return false;
  }
}

/// What is simulated among so many members.
std::vector<SimulatedCase> cases_of(const SimulateOptions& options, int members) {
  std::vector<SimulatedCase> cases(kCases.begin(), kCases.end());
  if (options.bytes) {
    cases.clear();
    for (const CollectiveKind kind : kSimulatedKinds)
      cases.push_back(
          {kind, moves_blocks(kind) ? *options.bytes / static_cast<std::size_t>(members) : *options.bytes});
  }
  if (options.kind)
    std::erase_if(cases, [&](const SimulatedCase& what) { return what.kind != *options.kind; });
  return cases;
}

/// The buffers of a call, which all members share: only times are of interest.
struct SimulatedBuffers {
  SimulatedBuffers(const SimulatedCase& what, int members)
      : block(zeros(what, 1)),
        all(zeros(what, moves_blocks(what.kind) ? members : 0)),
        all_received(zeros(what, moves_blocks(what.kind) ? members : 0)) {}

  static Tensor zeros(const SimulatedCase& what, std::int64_t blocks) {
    return Tensor::zeros({static_cast<std::int64_t>(what.bytes / sizeof(float)) * blocks}, DType::kFloat32);
  }

  Tensor block;
  Tensor all;
  Tensor all_received;
};

Work start(Communicator& member, CollectiveKind kind, const SimulatedBuffers& buffers) {
  constexpr int kRoot = 0;
  switch (kind) {
    case CollectiveKind::kAllReduce: return member.all_reduce_async(buffers.block, ReduceOp::kSum);
    case CollectiveKind::kReduce:
      return member.reduce_async(buffers.block, buffers.block, ReduceOp::kSum, kRoot);
    case CollectiveKind::kBroadcast: return member.broadcast_async(buffers.block, kRoot);
    case CollectiveKind::kAllGather: return member.all_gather_async(buffers.block, buffers.all);
    case CollectiveKind::kReduceScatter:
      return member.reduce_scatter_async(buffers.all, buffers.block, ReduceOp::kSum);
    case CollectiveKind::kGather: return member.gather_async(buffers.block, buffers.all, kRoot);
    case CollectiveKind::kScatter: return member.scatter_async(buffers.all, buffers.block, kRoot);
    case CollectiveKind::kAllToAll: return member.all_to_all_async(buffers.all, buffers.all_received);
    default: return member.barrier_async();
  }
}

/// The lanes that the members have agreed on.
int lanes_of(const Communicator& member) {
  for (const TuningFigure& figure : member.tuning()) {
    if (figure.name == "lanes") return static_cast<int>(figure.value);
  }
  return 0;
}

double formula_seconds(const SimulatedCase& what, const SimulateOptions& options, int nodes, int lanes) {
  const simulation::NetworkModel& network = options.network;
  const CostConstants constants{.latency_seconds = network.latency_seconds,
                                .seconds_per_byte = network.seconds_per_byte,
                                .reduce_seconds_per_byte = 0};
  const int members = nodes * options.lanes;
  const bool of_all = traits_of(what.kind).input == CollectiveTraits::Extent::kAllBlocks;
  return network::whole_call_seconds(
      {.kind = what.kind,
       .dtype = DType::kFloat32,
       .op = ReduceOp::kSum,
       .elements = what.bytes / sizeof(float),
       .bytes = of_all ? what.bytes * static_cast<std::size_t>(members) : what.bytes,
       .members = members,
       .nodes = nodes,
       .lanes = lanes},
      constants, network.eager_bytes);
}

void simulate(const SimulateOptions& options, int nodes, std::vector<SimulateRow>& rows) {
  SimulatedCluster cluster(
      {.nodes = nodes, .members = options.lanes, .network = options.network, .copied_bytes = kCopiedBytes});
  // The first long call of a cluster also measures the network.
  const SimulatedCase long_call{CollectiveKind::kAllReduce, std::size_t{1} << 20};
  const SimulatedBuffers long_buffers(long_call, cluster.size());
  cluster.run(1, [&](Communicator& member, int) { return start(member, long_call.kind, long_buffers); });
  for (const SimulatedCase& what : cases_of(options, cluster.size())) {
    const SimulatedBuffers buffers(what, cluster.size());
    const auto call = [&](Communicator& member, int) { return start(member, what.kind, buffers); };
    const SimulatedRun run = cluster.run(1, call);
    for (const std::optional<Error>& error : run.errors) {
      if (error) throw_error(*error);
    }
    rows.push_back({to_string(what.kind), nodes, options.bytes.value_or(what.bytes),
                    cluster.communicator(0).last_algorithm(), run.seconds * 1e6,
                    formula_seconds(what, options, nodes, lanes_of(cluster.communicator(0))) * 1e6});
  }
}

}  // namespace

SimulateResult measure(const SimulateOptions& options, const CommandContext&) {
  SimulateResult result{options, {}};
  if (options.faults) {
    for (std::uint64_t seed = options.seed; seed < options.seed + *options.faults; ++seed) {
      const simulation::FaultSchedule schedule = simulation::fault_schedule(seed);
      const std::string problem = simulation::problem_of(schedule);
      if (!problem.empty()) throw Internal("seed {} ({}): {}", seed, schedule.describe(), problem);
    }
    return result;
  }
  std::ofstream plot;
  if (!options.plot.empty()) {
    plot.open(options.plot);
    if (!plot) {
      throw UsageError("--plot {}: cannot be written ({}); name a file in a folder that exists and is yours",
                       options.plot, std::strerror(errno));
    }
  }
  for (int nodes = 2; nodes < options.nodes; nodes *= 2) simulate(options, nodes, result.rows);
  simulate(options, options.nodes, result.rows);
  if (plot.is_open()) {
    write_plot(plot, result);
    plot.close();
    if (!plot)
      throw Unavailable("--plot {}: could not be written completely: is the disk full?", options.plot);
  }
  return result;
}

}  // namespace cohort::bench
