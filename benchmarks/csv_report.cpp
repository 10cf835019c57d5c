#include <ostream>

#include <fmt/ostream.h>

#include "report.h"

namespace cohort::bench {
namespace {

/// One header line and one row per size and library; a value that does not exist is empty.
class CsvReport final : public Report {
 public:
  explicit CsvReport(std::ostream& stream) : stream_(stream) {}

  void begin(const Environment& /*environment*/, const std::string& /*subject*/) override {
    stream_ << "collective,library,algorithm,dtype,op,members,bytes,elements,in_place,inputs,median_us,min_"
               "us,p99_us,"
               "iteration_us,algbw_gbs,busbw_gbs,ratio_to_peer,wrong,choice\n";
  }

  void add(const Result& row) override {
    fmt::print(stream_, "{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.6f},{:.6f},",
               row.collective, row.library, row.algorithm, row.dtype, row.op, row.members, row.bytes,
               row.elements, row.in_place, row.inputs, row.median_us, row.min_us, row.p99_us,
               row.iteration_us, row.algbw_gbs, row.busbw_gbs);
    if (row.ratio_to_peer) fmt::print(stream_, "{:.6f}", *row.ratio_to_peer);
    stream_ << ',';
    if (row.wrong) stream_ << *row.wrong;
    stream_ << ',' << row.choice;
    stream_ << std::endl;  // each row at once: sweeps take long and may be cut short
  }

  void note(const std::string& /*text*/) override {}  // a reader of CSV expects rows only
  void end() override {}

 private:
  std::ostream& stream_;
};

}  // namespace

std::unique_ptr<Report> make_csv_report(std::ostream& stream) { return std::make_unique<CsvReport>(stream); }

}  // namespace cohort::bench
