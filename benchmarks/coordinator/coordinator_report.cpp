#include <ostream>

#include <fmt/ostream.h>

#include "coordinator/coordinator.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const CoordinatorResult& result) {
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.2f}", *value) : std::string();
  };
  stream << "case,workers,servers,closures_per_s,round_trip_us,chief_cpu_us,original_per_s,"
            "original_round_trip_us\n";
  for (const CoordinatorRow& row : result.rows) {
    fmt::print(stream, "{},{},{},{:.0f},{},{},{},{}\n", row.name, row.workers, row.servers,
               row.closures_per_s, cell(row.round_trip_us), cell(row.chief_cpu_us), cell(row.original_per_s),
               cell(row.original_trip_us));
  }
}

void write_json(std::ostream& stream, const Environment& environment, const CoordinatorResult& result) {
  Json rows = Json::array();
  for (const CoordinatorRow& row : result.rows) {
    rows.push_back({{"case", row.name},
                    {"workers", row.workers},
                    {"servers", row.servers},
                    {"closures_per_s", row.closures_per_s},
                    {"round_trip_us", or_null(row.round_trip_us)},
                    {"chief_cpu_us", or_null(row.chief_cpu_us)},
                    {"original_per_s", or_null(row.original_per_s)},
                    {"original_round_trip_us", or_null(row.original_trip_us)}});
  }
  const Json coordinator{{"loops", result.loops}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"coordinator", coordinator}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const CoordinatorResult& result) {
  fmt::print(stream, "{}# coordinator: functions of workers, which are processes; median of {} loops\n",
             summarize(environment), result.loops);
  stream << "# round trip: one is scheduled and its result fetched; cpu: of the coordinator, per closure\n"
            "# no workers: the commits of a server's memory alone, without and with a record of them\n"
            "# original: TensorFlow 2.21.0 on 2 cores that had other work, too\n\n";
  constexpr auto kRow = "{:<16} {:>7} {:>7} {:>11} {:>13} {:>8} {:>10} {:>13}\n";
  fmt::print(stream, kRow, "case", "workers", "servers", "closures/s", "round trip us", "cpu us",
             "original/s", "its trip us");
  const auto figure = [](const std::optional<double>& value) { return value ? three_digits(*value) : "-"; };
  for (const CoordinatorRow& row : result.rows) {
    fmt::print(stream, kRow, row.name, row.workers, row.servers, fmt::format("{:.0f}", row.closures_per_s),
               figure(row.round_trip_us), figure(row.chief_cpu_us), figure(row.original_per_s),
               figure(row.original_trip_us));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const CoordinatorResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
