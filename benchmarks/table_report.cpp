#include <algorithm>
#include <cmath>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "option_values.h"
#include "report.h"

namespace cohort::bench {
namespace {

template <class T>
std::string or_dash(const std::optional<T>& value, std::string (*format)(T)) {
  return value ? format(*value) : "-";
}

/// For example `cohort: direct/model`; a peer chooses for itself.
std::string who(const Result& row) {
  const std::string text = fmt::format("{}: {}", row.library, row.algorithm);
  return row.choice == "library" ? text : fmt::format("{}/{}", text, row.choice);
}

constexpr auto kRow = "{:>6} {:>10} {:>8} {:<20} {:>8} {:>8} {:>8} {:>8} {:>7} {:>6} {:>5}\n";

class TableReport final : public Report {
 public:
  explicit TableReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& environment, const std::string& subject) override {
    stream_ << summarize(environment) << "# " << subject << "\n"
            << "# times: mean of a loop's calls on the slowest member, median and least of the loops; p99: "
               "of single\n"
            << "# calls; iter.: with writing the input and reading the result; GB: 1e9 bytes; K, M, G: "
               "powers of 1024;\n"
            << "# ratio: the other library's median over this one's, so above 1 this one is faster\n\n";
    print("size", "elements", "dtype", "algorithm/choice", "median", "min", "p99", "iter.", "busbw", "ratio",
          "wrong");
    print("bytes", "", "", "", "us", "us", "us", "us", "GB/s", "", "elem");
    stream_.flush();
  }

  void add(const Result& row) override {
    print(format_size(row.bytes), fmt::format("{}", row.elements), row.dtype, who(row),
          three_digits(row.median_us), three_digits(row.min_us), three_digits(row.p99_us),
          three_digits(row.iteration_us), three_digits(row.busbw_gbs),
          or_dash(row.ratio_to_peer, three_digits),
          or_dash<std::uint64_t>(row.wrong, [](std::uint64_t wrong) { return fmt::format("{}", wrong); }));
    if (row.memory_limit_us) {
      fmt::print(stream_, "{:>6} {:>10} memory allows {} us: {} reaches {:.0f} %\n", "", "",
                 three_digits(*row.memory_limit_us), row.library, 100 * *row.memory_limit_us / row.median_us);
    }
    stream_.flush();
  }

  void note(const std::string& text) override { stream_ << text << "\n"; }
  void end() override { stream_.flush(); }

 private:
  template <class... Cells>
  void print(const Cells&... cells) {
    fmt::print(stream_, fmt::runtime(kRow), cells...);
  }

  std::ostream& stream_;
};

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

std::string three_digits(double value) {
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(2 - magnitude, 0, 5));
}

std::string summarize(const Environment& environment) {
  const NodeFacts& first = environment.nodes.front();
  std::string hosts = first.host;
  if (environment.nodes.size() > 1) hosts += fmt::format(" to {}", environment.nodes.back().host);

  std::string settings;
  for (const SettingFact& setting : environment.settings) {
    if (setting.from_environment) settings += fmt::format(" {}={}", setting.name, setting.value);
  }
  const std::string mpi = environment.mpi_library.substr(0, environment.mpi_library.find(','));
  const auto count = [](int number) { return static_cast<std::size_t>(number); };

  std::string text = fmt::format("# Cohort {} ({}), {}, {}\n", environment.version, environment.build, mpi,
                                 environment.date);
  text += fmt::format("# {} on {} ({}), {}: {}\n", plural(count(environment.members()), "member"),
                      plural(environment.nodes.size(), "node"), hosts,
                      plural(count(environment.cores()), "core"), describe_binding(environment));
  text += fmt::format("# {}, {}\n", first.cpu_model, first.kernel);
  if (!environment.gpu.empty()) text += fmt::format("# GPU of member 0: {}\n", environment.gpu);
  text += fmt::format("# clock: {}\n", environment.clock);
  text += fmt::format("# settings:{}\n", settings.empty() ? " all default" : settings);
  text += fmt::format("# {}\n", environment.command_line);
  return text;
}

std::unique_ptr<Report> make_table_report(std::ostream& stream) {
  return std::make_unique<TableReport>(stream);
}

}  // namespace cohort::bench
