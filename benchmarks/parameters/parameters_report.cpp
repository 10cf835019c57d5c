#include <ostream>

#include <fmt/ostream.h>

#include "parameters/parameters.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const ParametersResult& result) {
  stream << "case,servers,bytes,gib_per_s,ratio_to_limit,limit_gib_per_s,us\n";
  for (const ParametersRow& row : result.rows) {
    fmt::print(stream, "{},{},{},{:.6g},{:.6g},{:.6g},{:.6g}\n", row.name, row.servers, row.bytes,
               row.gib_per_s, row.ratio_to_limit(), row.limit_gib_per_s, row.us);
  }
}

void write_json(std::ostream& stream, const Environment& environment, const ParametersResult& result) {
  Json rows = Json::array();
  for (const ParametersRow& row : result.rows) {
    rows.push_back({{"case", row.name},
                    {"servers", row.servers},
                    {"bytes", row.bytes},
                    {"gib_per_s", row.gib_per_s},
                    {"ratio_to_limit", row.ratio_to_limit()},
                    {"limit_gib_per_s", row.limit_gib_per_s},
                    {"us", row.us}});
  }
  const Json parameters{{"table_mib", result.table_mib}, {"loops", result.loops}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"parameters", parameters}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const ParametersResult& result) {
  fmt::print(stream,
             "{}# parameters: a variable on each server, taken in turn by one thread; median of {} loops\n",
             summarize(environment), result.loops);
  fmt::print(stream,
             "# rows: random ones of tables of {} MiB; us: of one variable or row\n"
             "# limit: memcpy of the same bytes by one thread (to another host: a plain TCP connection), in "
             "turns\n\n",
             result.table_mib);
  constexpr auto kRow = "{:<6} {:>7} {:>10} {:>10} {:>8} {:>8} {:>6}\n";
  fmt::print(stream, kRow, "case", "servers", "bytes", "us", "GiB/s", "limit", "ratio");
  for (const ParametersRow& row : result.rows) {
    fmt::print(stream, kRow, row.name, row.servers, row.bytes, three_digits(row.us),
               three_digits(row.gib_per_s), three_digits(row.limit_gib_per_s),
               three_digits(row.ratio_to_limit()));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const ParametersResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
