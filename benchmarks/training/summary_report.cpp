#include <ostream>

#include <fmt/ostream.h>

#include "report.h"
#include "training/summary.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const SummaryResult& result) {
  stream << "case,us\n";
  for (const SummaryRow& row : result.rows) fmt::print(stream, "{},{:.4g}\n", row.name, row.us);
}

void write_json(std::ostream& stream, const Environment& environment, const SummaryResult& result) {
  Json rows = Json::array();
  for (const SummaryRow& row : result.rows) rows.push_back({{"case", row.name}, {"us", row.us}});
  const Json summary{{"loops", result.loops}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"summary", summary}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const SummaryResult& result) {
  fmt::print(stream, "{}# us of a value that a SummaryWriter records, median of {} loops\n\n",
             summarize(environment), result.loops);
  constexpr auto kRow = "{:<44} {:>9}\n";
  fmt::print(stream, kRow, "case", "us");
  for (const SummaryRow& row : result.rows) fmt::print(stream, kRow, row.name, three_digits(row.us));
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const SummaryResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
