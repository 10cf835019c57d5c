#include <ostream>

#include <fmt/ostream.h>

#include "report.h"
#include "simulate/simulate.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const SimulateResult& result) {
  stream << "collective,nodes,lanes,bytes,algorithm,simulated_us,formula_us\n";
  for (const SimulateRow& row : result.rows) {
    fmt::print(stream, "{},{},{},{},{},{:.4g},{:.4g}\n", row.collective, row.nodes, result.options.lanes,
               row.bytes, row.algorithm, row.simulated_us, row.formula_us);
  }
}

void write_json(std::ostream& stream, const Environment& environment, const SimulateResult& result) {
  Json rows = Json::array();
  for (const SimulateRow& row : result.rows) {
    rows.push_back({{"collective", row.collective},
                    {"nodes", row.nodes},
                    {"lanes", result.options.lanes},
                    {"bytes", row.bytes},
                    {"algorithm", row.algorithm},
                    {"simulated_us", row.simulated_us},
                    {"formula_us", row.formula_us}});
  }
  stream << Json{{"environment", to_json(environment)}, {"simulated", rows}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const SimulateResult& result) {
  const SimulateOptions& options = result.options;
  stream << summarize(environment);
  if (options.faults) {
    fmt::print(stream, "# {} jobs with a fault, from seed {} on: all end, and name who is guilty\n",
               *options.faults, options.seed);
    return;
  }
  const simulation::NetworkModel& network = options.network;
  fmt::print(
      stream,
      "# simulated, not measured: {} members on each node, {:.3g} us between nodes, {:.3g} Gbit/s for each "
      "node; what members do on their node takes no time\n# formula: what the library expects when it "
      "chooses "
      "an algorithm\n\n",
      options.lanes, network.latency_seconds * 1e6, 8e-9 / network.seconds_per_byte);
  constexpr auto kRow = "{:<16} {:>6} {:>9} {:<28} {:>13} {:>11}\n";
  fmt::print(stream, kRow, "collective", "nodes", "bytes", "algorithm", "simulated us", "formula us");
  for (const SimulateRow& row : result.rows) {
    fmt::print(stream, kRow, row.collective, row.nodes, row.bytes, row.algorithm,
               three_digits(row.simulated_us), three_digits(row.formula_us));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SimulateResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
