#include "simulate.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "collective/network/cost_model.h"
#include "command_line.h"
#include "errors.h"
#include "report.h"
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

constexpr std::array kSimulatedCases{SimulatedCase{CollectiveKind::kBarrier, 0},
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
  std::vector<SimulatedCase> cases(kSimulatedCases.begin(), kSimulatedCases.end());
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

namespace {

constexpr std::string_view kSimulateAbout =
    R"(Usage: cohort-bench simulate [OPTION ...]

simulate: predicts the times of collectives between many nodes, by the library's own code on a virtual clock and
over a network by a model; what members do on their node takes no time. Or carries out jobs in which members are killed
and links are cut. In one process.
)";

OptionsDescription simulate_options() {
  OptionsDescription all = make_options("Options of simulate");
  add_option(all, "nodes", "N", "up to N nodes, from 2 on in powers of two; default 256");
  add_option(all, "lanes", "N", "members of each node, with 0.7 MiB of memory for each; default 4");
  add_option(all, "latency-ns", "NS", "of a message between two nodes; default 2000");
  add_option(all, "gbits", "N", "a node's link, in Gbit/s; default 100");
  add_option(all, "eager-bytes", "N", "longer messages wait for their receives; default 8192");
  add_option(all, "bytes", "N", "of each call's largest buffer; default: of each call, some sizes");
  add_option(all, "collective", "NAME", "only this one, for example all-reduce; default: all");
  add_option(all, "gap-ns", "NS", "at least, between two messages of a node; default 200");
  add_option(all, "message-bytes", "N", "the longest message of a long call; default 57344");
  add_option(all, "group", "N", "nodes below one switch; default 0: all");
  add_option(all, "taper", "N", "nodes' bandwidth over that of their switch's link; default 1");
  add_option(all, "plot", "FILE", "write a picture of the times there, in SVG");
  add_option(all, "faults", "N", "carry out N jobs with a fault instead, and check them");
  add_option(all, "seed", "N", "of the first such job; default 1");
  return all;
}

/// As commands are called.
std::string name_of(CollectiveKind kind) {
  std::string name(to_string(kind));
  std::ranges::replace(name, '_', '-');
  return name;
}

CollectiveKind parse_kind(const std::string& name) {
  const auto found = std::ranges::find(kSimulatedKinds, name, name_of);
  if (found != kSimulatedKinds.end()) return *found;
  std::vector<std::string> names;
  std::ranges::transform(kSimulatedKinds, std::back_inserter(names), name_of);
  throw UsageError("--collective {}: choose one of {}", name, fmt::join(names, ", "));
}

CommandOptions parse_simulate(const GivenOptions& given) {
  SimulateOptions simulate;
  constexpr int kMany = 1 << 20;
  if (given.has("nodes")) simulate.nodes = given.count("nodes", 2, 4096);
  if (given.has("lanes")) simulate.lanes = given.count("lanes", 1, 64);
  if (given.has("latency-ns")) simulate.network.latency_seconds = given.count("latency-ns", 0, kMany) * 1e-9;
  if (given.has("gbits")) simulate.network.seconds_per_byte = 8e-9 / given.count("gbits", 1, kMany);
  if (given.has("eager-bytes"))
    simulate.network.eager_bytes = static_cast<std::size_t>(given.count("eager-bytes", 1, 1 << 30));
  if (given.has("bytes")) simulate.bytes = static_cast<std::size_t>(given.count("bytes", 1, 1 << 30));
  if (given.has("collective")) simulate.kind = parse_kind(given.text("collective"));
  if (given.has("gap-ns")) simulate.network.gap_seconds = given.count("gap-ns", 0, kMany) * 1e-9;
  if (given.has("message-bytes"))
    simulate.network.message_bytes = static_cast<std::size_t>(given.count("message-bytes", 1, 1 << 30));
  if (given.has("group")) simulate.network.nodes_of_group = given.count("group", 0, kMany);
  if (given.has("taper")) simulate.network.taper = given.count("taper", 1, kMany);
  if (given.has("faults")) simulate.faults = static_cast<std::uint64_t>(given.count("faults", 1, kMany));
  if (simulate.faults) given.refuse({"plot", "collective", "bytes"}, "jobs with faults have no times");
  simulate.plot = given.text("plot");
  if (given.has("seed")) simulate.seed = static_cast<std::uint64_t>(given.count("seed", 1, 1 << 30));
  return simulate;
}

}  // namespace

Command simulate_command() {
  return {.name = "simulate",
          .group = "Machines with many cores",
          .text = "collectives between up to 4096 nodes, simulated",
          .about = kSimulateAbout,
          .options = simulate_options,
          .parse = parse_simulate};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SimulateResult& result) {
  using Row = SimulateRow;
  const SimulateOptions& options = result.options;
  RowsReport<Row> report{.name = "simulated",
                         .introduction = {},
                         .fields = {{"collective", &Row::collective},
                                    {"nodes", &Row::nodes},
                                    {"lanes", [&](const Row& /*row*/) { return options.lanes; }},
                                    {"bytes", &Row::bytes},
                                    {"algorithm", &Row::algorithm},
                                    {"simulated_us", &Row::simulated_us, "{:.4g}"},
                                    {"formula_us", &Row::formula_us, "{:.4g}"}},
                         .columns = {}};
  if (options.faults) {
    report.introduction =
        fmt::format("# {} jobs with a fault, from seed {} on: all end, and name who is guilty\n",
                    *options.faults, options.seed);
  } else {
    report.introduction = fmt::format(
        "# simulated, not measured: {} members on each node, {:.3g} us between nodes, {:.3g} Gbit/s for each "
        "node; what members do on their node takes no time\n"
        "# formula: what the library expects when it chooses an algorithm\n\n",
        options.lanes, options.network.latency_seconds * 1e6, 8e-9 / options.network.seconds_per_byte);
    report.columns = {{"collective", -16, &Row::collective},
                      {"nodes", 6, &Row::nodes},
                      {"bytes", 9, &Row::bytes},
                      {"algorithm", -28, &Row::algorithm},
                      {"simulated us", 13, &Row::simulated_us},
                      {"formula us", 11, &Row::formula_us}};
  }
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
