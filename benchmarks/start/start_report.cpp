#include <ostream>

#include <fmt/ostream.h>

#include "report.h"
#include "start/start.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const StartResult& result) {
  stream << "phase,ms\n";
  for (const StartRow& row : result.rows) fmt::print(stream, "{},{:.4g}\n", row.phase, row.ms);
}

void write_json(std::ostream& stream, const Environment& environment, const StartResult& result) {
  Json rows = Json::array();
  for (const StartRow& row : result.rows) rows.push_back({{"phase", row.phase}, {"ms", row.ms}});
  const Json start{{"communicators", result.communicators}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"start", start}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const StartResult& result) {
  fmt::print(stream, "{}# ms of the slowest rank; of {} further communicators, the median\n\n",
             summarize(environment), result.communicators);
  constexpr auto kRow = "{:<28} {:>9}\n";
  fmt::print(stream, kRow, "phase", "ms");
  for (const StartRow& row : result.rows) fmt::print(stream, kRow, row.phase, three_digits(row.ms));
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const StartResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
