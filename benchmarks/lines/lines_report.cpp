#include <ostream>

#include <fmt/ostream.h>

#include "lines/lines.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const LinesResult& result) {
  stream << "collective,engine,members,bytes,chain,chain_far,read_per_n,cross_socket_per_n,predicted_us\n";
  for (const LinesRow& row : result.rows) {
    fmt::print(stream, "{},{},{},{},{},{},{:.4g},{:.4g},{:.4g}\n", row.collective, row.engine, result.members,
               row.bytes, row.chain, row.chain_far, row.read, row.cross_socket, row.predicted_us);
  }
}

void write_json(std::ostream& stream, const Environment& environment, const LinesResult& result) {
  Json rows = Json::array();
  for (const LinesRow& row : result.rows) {
    rows.push_back({{"collective", row.collective},
                    {"engine", row.engine},
                    {"bytes", row.bytes},
                    {"chain", row.chain},
                    {"chain_far", row.chain_far},
                    {"read_per_n", row.read},
                    {"cross_socket_per_n", row.cross_socket},
                    {"predicted_us", row.predicted_us}});
  }
  const Json lines{{"topology", result.topology},
                   {"members", result.members},
                   {"latencies", result.latencies},
                   {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"lines", lines}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const LinesResult& result) {
  fmt::print(
      stream,
      "{}# counted for {} members on {}; times predicted, not measured, by latencies of {}\n"
      "# n: bytes that one member contributes; chain: cache lines of the longest chain of waits, far: of "
      "them, from another socket\n\n",
      summarize(environment), result.members, result.topology, result.latencies);
  constexpr auto kRow = "{:<16} {:<8} {:>9} {:>6} {:>5} {:>10} {:>18} {:>13}\n";
  fmt::print(stream, kRow, "collective", "engine", "n", "chain", "far", "read per n", "cross socket per n",
             "predicted us");
  for (const LinesRow& row : result.rows) {
    fmt::print(stream, kRow, row.collective, row.engine, row.bytes, row.chain, row.chain_far,
               three_digits(row.read), three_digits(row.cross_socket), three_digits(row.predicted_us));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const LinesResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
