#include <array>
#include <ostream>

#include <fmt/ostream.h>

#include <cohort/base/error.h>

#include "option_values.h"
#include "report.h"
#include "sweep/sweep.h"

namespace cohort::bench {
namespace {

/// One header line and one row per size and library; a value that does not exist is empty.
class CsvReport final : public SweepReport {
 public:
  explicit CsvReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& /*environment*/, const std::string& /*subject*/) override {
    stream_ << "collective,library,algorithm,dtype,op,members,bytes,elements,in_place,inputs,"
               "median_us,min_us,p99_us,iteration_us,algbw_gbs,busbw_gbs,ratio_to_peer,wrong,choice\n";
  }

  void add(const SweepRow& row) override {
    fmt::print(stream_, "{},{},{},{},{},{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.6f},{:.6f},",
               row.collective, row.library, row.algorithm, row.dtype, row.op, row.members, row.bytes,
               row.elements, row.in_place, row.inputs, row.median_us, row.min_us, row.p99_us,
               row.iteration_us, row.algbw_gbs, row.busbw_gbs);
    if (row.ratio_to_peer) fmt::print(stream_, "{:.6f}", *row.ratio_to_peer);
    stream_ << ',';
    if (row.wrong) stream_ << *row.wrong;
    stream_ << ',' << row.choice;
    stream_ << std::endl;  // each row at once: sweeps take long and may be cut short
  }

  // A reader of CSV expects rows only.
  void note(const std::string& /*text*/) override {}
  void compare(const Comparison& /*comparison*/) override {}
  void end() override {}

 private:
  std::ostream& stream_;
};

Json row_to_json(const SweepRow& row) {
  return {{"collective", row.collective},
          {"library", row.library},
          {"algorithm", row.algorithm},
          {"choice", row.choice},
          {"dtype", row.dtype},
          {"op", row.op},
          {"members", row.members},
          {"bytes", row.bytes},
          {"elements", row.elements},
          {"in_place", row.in_place},
          {"inputs", row.inputs},
          {"buffers", row.buffers},
          {"loops", row.loops},
          {"iterations", row.iterations},
          {"median_us", row.median_us},
          {"min_us", row.min_us},
          {"p99_us", row.p99_us},
          {"iteration_us", row.iteration_us},
          {"rounds_us", row.rounds_us},
          {"algbw_gbs", row.algbw_gbs},
          {"busbw_gbs", row.busbw_gbs},
          {"ratio_to_peer", or_null(row.ratio_to_peer)},
          {"wrong", or_null(row.wrong)},
          {"memory_limit_us", or_null(row.memory_limit_us)},
          {"memory_limit_share",
           row.memory_limit_us ? Json(*row.memory_limit_us / row.median_us) : Json(nullptr)}};
}

/// One object with `environment` and `results`, whose fields are named as the columns of the CSV.
class JsonReport final : public SweepReport {
 public:
  explicit JsonReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& environment, const std::string& subject) override {
    document_.begin(environment, subject);
  }
  void add(const SweepRow& row) override { document_.add(row); }
  void note(const std::string& text) override { document_.note(text); }
  void compare(const Comparison& comparison) override { document_.compare(comparison); }
  void end() override { stream_ << document_.json().dump(2) << std::endl; }

 private:
  std::ostream& stream_;
  SweepDocument document_;
};

template <class T>
std::string or_dash(const std::optional<T>& value, std::string (*format)(T)) {
  return value ? format(*value) : "-";
}

/// For example `cohort: direct/model`; a peer chooses for itself.
std::string label_of(const SweepRow& row) {
  const std::string text = fmt::format("{}: {}", row.library, row.algorithm);
  return row.choice == "library" ? text : fmt::format("{}/{}", text, row.choice);
}

constexpr auto kLegend = R"(
# times: mean of a loop's calls on the slowest member, median and least of the loops; p99: of single
# calls; iter.: with writing the input and reading the result; GB: 1e9 bytes; K, M, G: powers of 1024;
# ratio: the other library's median over this one's, so above 1 this one is faster

)";

/// A line of cells that end at fixed places. One that is too long shifts the next ones only as far as these
/// have no blanks to spare.
std::string line_of(const std::array<std::string, 11>& cells) {
  constexpr std::array<std::size_t, 11> kEnds{6, 17, 26, 47, 56, 65, 74, 83, 91, 98, 104};
  constexpr std::size_t kLabel = 3;  // the only one that is aligned at its left
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t used = line.size() + cells[i].size();
    const std::size_t least = i == 0 ? 0 : 1;
    const std::size_t blanks = i == kLabel || used + least > kEnds[i] ? least : kEnds[i] - used;
    line += std::string(blanks, ' ') + cells[i];
  }
  return line + "\n";
}

class TableReport final : public SweepReport {
 public:
  explicit TableReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& environment, const std::string& subject) override {
    stream_ << summarize(environment) << "# " << subject << kLegend;
    print("size", "elements", "dtype", "algorithm/choice", "median", "min", "p99", "iter.", "busbw", "ratio",
          "wrong");
    print("bytes", "", "", "", "us", "us", "us", "us", "GB/s", "", "elem");
    stream_.flush();
  }

  void add(const SweepRow& row) override {
    print(format_size(row.bytes), fmt::format("{}", row.elements), row.dtype, label_of(row),
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
  void compare(const Comparison& comparison) override { stream_ << to_text(comparison) << "\n"; }
  void end() override { stream_.flush(); }

 private:
  template <class... Cells>
  void print(const Cells&... cells) {
    stream_ << line_of({std::string(cells)...});
  }

  std::ostream& stream_;
};

}  // namespace

void SweepDocument::begin(const Environment& environment, const std::string& subject) {
  json_ = {{"environment", to_json(environment)},
           {"subject", subject},
           {"results", Json::array()},
           {"notes", Json::array()}};
}

void SweepDocument::add(const SweepRow& row) { json_["results"].push_back(row_to_json(row)); }

void SweepDocument::note(const std::string& text) { json_["notes"].push_back(text); }

void SweepDocument::compare(const Comparison& comparison) { json_["comparison"] = to_json(comparison); }

std::unique_ptr<SweepReport> make_sweep_report(Format format, std::ostream& stream) {
  switch (format) {
    case Format::kTable: return std::make_unique<TableReport>(stream);
    case Format::kCsv: return std::make_unique<CsvReport>(stream);
    case Format::kJson: return std::make_unique<JsonReport>(stream);
  }
  throw Internal("report format {} does not exist", static_cast<int>(format));
}

}  // namespace cohort::bench
