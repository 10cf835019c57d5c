#include <ostream>

#include <fmt/ostream.h>

#include "report.h"
#include "training/trainer.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const TrainerResult& result) {
  stream << "case,overhead_us\n";
  for (const TrainerRow& row : result.rows) fmt::print(stream, "{},{:.3f}\n", row.name, row.overhead_us);
}

void write_json(std::ostream& stream, const Environment& environment, const TrainerResult& result) {
  Json rows = Json::array();
  for (const TrainerRow& row : result.rows)
    rows.push_back({{"case", row.name}, {"by_hand_us", row.by_hand_us}, {"overhead_us", row.overhead_us}});
  const Json trainer{{"loops", result.loops}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"trainer", trainer}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const TrainerResult& result) {
  fmt::print(stream, "{}# what a Trainer adds to a step of the same loop by hand, median of {} pairs\n\n",
             summarize(environment), result.loops);
  constexpr auto kRow = "{:<32} {:>12} {:>14}\n";
  fmt::print(stream, kRow, "case", "by hand us", "overhead us");
  for (const TrainerRow& row : result.rows)
    fmt::print(stream, kRow, row.name, three_digits(row.by_hand_us), fmt::format("{:.3f}", row.overhead_us));
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const TrainerResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
