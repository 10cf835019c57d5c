#include <ostream>

#include <fmt/ostream.h>

#include "input/input.h"
#include "report.h"

namespace cohort::bench {
namespace {

using Json = nlohmann::ordered_json;

void write_csv(std::ostream& stream, const InputResult& result) {
  const auto cell = [](const char* format, const auto& value) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string();
  };
  stream << "source,replicas,batch,batches_per_s,elements_per_s,bytes_per_s,waiting_share,peak_rss_bytes\n";
  for (const InputRow& row : result.rows) {
    fmt::print(stream, "{},{},{},{},{},{:.0f},{},{}\n", row.source, cell("{}", row.replicas),
               cell("{}", row.batch), cell("{:.1f}", row.batches_per_s), cell("{:.1f}", row.elements_per_s),
               row.bytes_per_s, cell("{:.4f}", row.waiting_share), row.peak_rss_bytes);
  }
}

void write_json(std::ostream& stream, const Environment& environment, const InputResult& result) {
  Json rows = Json::array();
  for (const InputRow& row : result.rows) {
    rows.push_back({{"source", row.source},
                    {"replicas", or_null(row.replicas)},
                    {"batch", or_null(row.batch)},
                    {"batches_per_s", or_null(row.batches_per_s)},
                    {"elements_per_s", or_null(row.elements_per_s)},
                    {"bytes_per_s", row.bytes_per_s},
                    {"compute_us", or_null(row.compute_us)},
                    {"waiting_share", or_null(row.waiting_share)},
                    {"peak_rss_bytes", row.peak_rss_bytes}});
  }
  const Json input{{"record_bytes", result.record_bytes},
                   {"file_bytes", result.file_bytes},
                   {"loops", result.loops},
                   {"results", rows}};
  stream << Json{{"environment", to_json(environment)}, {"input", input}}.dump(2) << "\n";
}

void write_table(std::ostream& stream, const Environment& environment, const InputResult& result) {
  fmt::print(
      stream,
      "{}# input: files of {} MiB from the system's cache, elements of {} bytes, median of {} passes\n",
      summarize(environment), result.file_bytes >> 20, result.record_bytes, result.loops);
  stream
      << "# no replicas: the source alone, on one thread; read(): the system call on the same file\n"
         "# waiting: share of the step's time in which the program waits for its batch, while it computes\n"
         "\n";
  constexpr auto kRow = "{:<20} {:>8} {:>6} {:>11} {:>12} {:>8} {:>11} {:>9} {:>9}\n";
  fmt::print(stream, kRow, "source", "replicas", "batch", "batches/s", "elements/s", "MB/s", "compute us",
             "waiting %", "peak MB");
  const auto count = [](const auto& value) { return value ? fmt::format("{}", *value) : "-"; };
  const auto figure = [](const std::optional<double>& value, double scale = 1) {
    return value ? three_digits(scale * *value) : "-";
  };
  for (const InputRow& row : result.rows) {
    fmt::print(stream, kRow, row.source, count(row.replicas), count(row.batch), figure(row.batches_per_s),
               figure(row.elements_per_s), figure(row.bytes_per_s, 1e-6), figure(row.compute_us),
               figure(row.waiting_share, 100), figure(static_cast<double>(row.peak_rss_bytes), 1e-6));
  }
}

}  // namespace

void write_report(Format format, std::ostream& stream, const Environment& environment,
                  const InputResult& result) {
  write_whole(
      format, stream, [&] { write_table(stream, environment, result); }, [&] { write_csv(stream, result); },
      [&] { write_json(stream, environment, result); });
}

}  // namespace cohort::bench
