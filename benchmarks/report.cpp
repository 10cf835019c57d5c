#include "report.h"

#include <cohort/base/error.h>

namespace cohort::bench {

std::unique_ptr<Report> make_report(Format format, std::ostream& stream) {
  switch (format) {
    case Format::kTable: return make_table_report(stream);
    case Format::kCsv: return make_csv_report(stream);
    case Format::kJson: return make_json_report(stream);
  }
  throw Internal("report format {} does not exist", static_cast<int>(format));
}

}  // namespace cohort::bench
