#include <ostream>

#include <fmt/ostream.h>

#include "checkpoint/checkpoint.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const CheckpointResult& result) {
  const auto cell = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.6g}", *value) : std::string();
  };
  stream << "mode,bytes,gib_per_s,ratio_to_copy,values,seconds,copy_seconds,step_loss,original_seconds\n";
  for (const CheckpointRow& row : result.rows) {
    fmt::print(stream, "{},{},{:.6g},{:.6g},{},{:.6g},{:.6g},{},{}\n", row.mode, row.bytes, row.gib_per_s(),
               row.ratio_to_copy(), row.values, row.seconds, row.copy_seconds, cell(row.step_loss),
               cell(row.original_seconds));
  }
}

void write_json(std::ostream& stream, const Environment& environment, const CheckpointResult& result) {
  Json rows = Json::array();
  for (const CheckpointRow& row : result.rows) {
    rows.push_back({{"mode", row.mode},
                    {"bytes", row.bytes},
                    {"gib_per_s", row.gib_per_s()},
                    {"ratio_to_copy", row.ratio_to_copy()},
                    {"values", row.values},
                    {"seconds", row.seconds},
                    {"copy_seconds", row.copy_seconds},
                    {"step_loss", or_null(row.step_loss)},
                    {"original_seconds", or_null(row.original_seconds)}});
  }
  const Json checkpoint{{"loops", result.loops}, {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"checkpoint", checkpoint}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const CheckpointResult& result) {
  fmt::print(stream, "{}# checkpoint: median of {} loops; copy: cp and fsync() of the same bytes, in turns\n",
             summarize(environment), result.loops);
  stream << "# save_async: the call alone; loss: of the time of steps on two cores, until it is on disk\n"
            "# original: TensorFlow 2.21.0 on 2 cores\n\n";
  constexpr auto kRow = "{:<10} {:>11} {:>7} {:>9} {:>8} {:>9} {:>6} {:>8} {:>11}\n";
  fmt::print(stream, kRow, "mode", "bytes", "values", "seconds", "GiB/s", "copy s", "ratio", "loss %",
             "original s");
  const auto figure = [](const std::optional<double>& value, double scale = 1) {
    return value ? three_digits(scale * *value) : "-";
  };
  for (const CheckpointRow& row : result.rows) {
    fmt::print(stream, kRow, row.mode, row.bytes, row.values, three_digits(row.seconds),
               three_digits(row.gib_per_s()), three_digits(row.copy_seconds),
               three_digits(row.ratio_to_copy()), figure(row.step_loss, 100), figure(row.original_seconds));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const CheckpointResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
