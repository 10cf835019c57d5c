#include <ostream>

#include <fmt/ostream.h>

#include "dispatch/dispatch.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const DispatchResult& result) {
  stream << "operation,devices,ns,allocations,original_us\n";
  for (const DispatchRow& row : result.rows) {
    fmt::print(stream, "{},{},{:.1f},{:.2f},{}\n", row.operation, row.devices, row.ns, row.allocations,
               row.original_us ? fmt::format("{}", *row.original_us) : "");
  }
}

void write_json(std::ostream& stream, const Environment& environment, const DispatchResult& result) {
  Json rows = Json::array();
  for (const DispatchRow& row : result.rows) {
    rows.push_back({{"operation", row.operation},
                    {"devices", row.devices},
                    {"ns", row.ns},
                    {"allocations", row.allocations},
                    {"original_us", or_null(row.original_us)}});
  }
  const Json dispatch{{"loops", result.loops}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"dispatch", dispatch}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const DispatchResult& result) {
  fmt::print(stream, "{}# what the strategy layer costs, median of {} loops; allocations: of all threads\n",
             summarize(environment), result.loops);
  stream << "# original: TensorFlow 2.21.0 on 2 cores, eager; ratio: its time over this one's\n\n";
  constexpr auto kRow = "{:<50} {:>7} {:>10} {:>12} {:>10} {:>8}\n";
  fmt::print(stream, kRow, "operation", "devices", "us", "allocations", "original", "ratio");
  for (const DispatchRow& row : result.rows) {
    const auto original = [&](const auto& of) {
      return row.original_us ? three_digits(of(*row.original_us)) : "-";
    };
    fmt::print(stream, kRow, row.operation, row.devices, three_digits(row.ns / 1000),
               three_digits(row.allocations), original([](double us) { return us; }),
               original([&](double us) { return 1000 * us / row.ns; }));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const DispatchResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
