#include <ostream>

#include <fmt/ostream.h>

#include "report.h"
#include "training/sharded_optimizer.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const ShardedOptimizerResult& result) {
  stream << "optimizer,ranks,replicated_ms,sharded_ms,ratio,replicated_bytes,sharded_bytes\n";
  for (const ShardedOptimizerRow& row : result.rows)
    fmt::print(stream, "{},{},{:.6g},{:.6g},{:.4g},{:.0f},{:.0f}\n", row.optimizer, result.ranks,
               row.replicated_ms, row.sharded_ms, row.ratio(), row.replicated_bytes, row.sharded_bytes);
}

void write_json(std::ostream& stream, const Environment& environment, const ShardedOptimizerResult& result) {
  Json rows = Json::array();
  for (const ShardedOptimizerRow& row : result.rows) {
    rows.push_back({{"optimizer", row.optimizer},
                    {"replicated_ms", row.replicated_ms},
                    {"sharded_ms", row.sharded_ms},
                    {"ratio", row.ratio()},
                    {"replicated_bytes", row.replicated_bytes},
                    {"sharded_bytes", row.sharded_bytes}});
  }
  const Json measured{{"model", result.model},
                      {"elements", result.elements},
                      {"ranks", result.ranks},
                      {"loops", result.loops},
                      {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"sharded_optimizer", measured}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const ShardedOptimizerResult& result) {
  fmt::print(
      stream,
      "{}# sharded-optimizer: {}, {} elements, {} ranks; a step, gradients summed in place, median of {}\n"
      "# bytes: of slots on a rank; ratio: sharded over replicated\n\n",
      summarize(environment), result.model, result.elements, result.ranks, result.loops);
  constexpr auto kRow = "{:<18} {:>13} {:>11} {:>6} {:>17} {:>14}\n";
  fmt::print(stream, kRow, "optimizer", "replicated ms", "sharded ms", "ratio", "replicated bytes",
             "sharded bytes");
  for (const ShardedOptimizerRow& row : result.rows)
    fmt::print(stream, kRow, row.optimizer, three_digits(row.replicated_ms), three_digits(row.sharded_ms),
               three_digits(row.ratio()), fmt::format("{:.0f}", row.replicated_bytes),
               fmt::format("{:.0f}", row.sharded_bytes));
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ShardedOptimizerResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
