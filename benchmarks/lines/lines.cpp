#include "lines.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <exception>
#include <memory>
#include <ostream>
#include <thread>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/collective/communicator.h>

#include "collective/host_communicators.h"
#include "collective/node/line_counter.h"
#include "command_line.h"
#include "device/machine.h"
#include "environment.h"
#include "report.h"

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

namespace {

constexpr std::string_view kLinesAbout =
    R"(Usage: cohort-bench lines [OPTION ...]

lines: counts the cache lines that calls of many members wait for, and the bytes that they read of others, on a
machine that is only described; and predicts times from published latencies. In one process.
)";

constexpr int kMostMembers = 512;

OptionsDescription lines_options() {
  OptionsDescription all = make_options("Options of lines");
  add_option(all, "topology", "MACHINE",
             "a file that 'lstopo FILE.xml' wrote, or a description; default 'pack:2 l3:8 core:8 pu:1'");
  add_option(all, "members", "N", "members, spread over the cores; default one per core");
  add_option(all, "latencies", "PROCESSOR", "whose latencies times are predicted by: epyc (default) or xeon");
  return all;
}

LatencyTable parse_latencies(const std::string& text) {
  if (text == "epyc") return LatencyTable::kEpyc;
  if (text == "xeon") return LatencyTable::kXeon;
  throw UsageError("--latencies: '{}' is neither epyc nor xeon", text);
}

CommandOptions parse_lines(const GivenOptions& given) {
  LinesOptions lines;
  lines.topology = given.text("topology", lines.topology.c_str());
  if (given.has("members")) lines.members = given.count("members", 1, kMostMembers);
  lines.latencies = parse_latencies(given.text("latencies", "epyc"));
  return lines;
}

}  // namespace

Command lines_command() {
  return {.name = "lines",
          .group = "Machines with many cores",
          .text = "cache lines that collectives wait for, counted",
          .about = kLinesAbout,
          .options = lines_options,
          .parse = parse_lines};
}

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const LinesResult& result) {
  using Row = LinesRow;
  const RowsReport<Row> report{
      .name = "lines",
      .facts = {{"topology", result.topology}, {"members", result.members}, {"latencies", result.latencies}},
      .introduction = fmt::format(
          "# counted for {} members on {}; times predicted, not measured, by latencies of {}\n"
          "# n: bytes that one member contributes; chain: cache lines of the longest chain of waits, far: of "
          "them, from another socket\n\n",
          result.members, result.topology, result.latencies),
      .fields = {{"collective", &Row::collective},
                 {"engine", &Row::engine},
                 {"members", [&](const Row& /*row*/) { return result.members; }, "{}", FieldIn::kCsv},
                 {"bytes", &Row::bytes},
                 {"chain", &Row::chain},
                 {"chain_far", &Row::chain_far},
                 {"read_per_n", &Row::read, "{:.4g}"},
                 {"cross_socket_per_n", &Row::cross_socket, "{:.4g}"},
                 {"predicted_us", &Row::predicted_us, "{:.4g}"}},
      .columns = {{"collective", -16, &Row::collective},
                  {"engine", -8, &Row::engine},
                  {"n", 9, &Row::bytes},
                  {"chain", 6, &Row::chain},
                  {"far", 5, &Row::chain_far},
                  {"read per n", 10, &Row::read},
                  {"cross socket per n", 18, &Row::cross_socket},
                  {"predicted us", 13, &Row::predicted_us}}};
  write_rows(format, stream, environment, report, result.rows);
}

}  // namespace cohort::bench
