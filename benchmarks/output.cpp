#include "output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <sstream>

#include <fmt/format.h>

#include "errors.h"
#include "report.h"
#include "report/page.h"

namespace cohort::bench {
namespace {

bool is_pipe_without_reader(int descriptor) {
  pollfd waited{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&waited, 1, 0) == 1 && (waited.revents & POLLERR) != 0;
}

/// Nothing without a path.
void open(std::ofstream& file, const char* option, const std::optional<std::string>& path) {
  if (!path) return;
  file.open(*path);
  if (file) return;
  throw UsageError("{} {}: cannot be written ({}); name a file in a folder that exists and is yours", option,
                   *path, std::strerror(errno));
}

}  // namespace

void complain(const std::string& text) { std::cerr << "cohort-bench: " + text + "\n" << std::flush; }

Output::Output(const RunOptions& run) : format_(run.format), fail_below_(run.fail_below) {
  for (const std::string& path : run.baselines) baselines_.push_back(read_results("--baseline", path));
  open(page_, "--report", run.page);
  if (!run.output) {
    reports_.push_back(make_sweep_report(run.format, std::cout));
    environment_to_stderr_ = run.format == Format::kCsv;
    return;
  }
  open(file_, "--output", run.output);
  // While the report goes to a file, the table on the screen shows the progress.
  reports_.push_back(make_sweep_report(run.format, file_));
  reports_.push_back(make_sweep_report(Format::kTable, std::cout));
}

void Output::begin(const Environment& environment, const std::string& subject) {
  const std::string warning = oversubscription_warning(environment);
  if (!warning.empty()) complain(warning);
  if (environment_to_stderr_) std::cerr << summarize(environment) << "# " << subject << std::endl;
  for (auto& report : reports_) report->begin(environment, subject);
  document_.begin(environment, subject);
}

void Output::add(std::span<const SweepRow> rows) {
  for (auto& report : reports_) {
    for (const SweepRow& row : rows) report->add(row);
  }
  for (const SweepRow& row : rows) document_.add(row);
}

void Output::note(const std::string& text) {
  if (environment_to_stderr_) complain(text);
  for (auto& report : reports_) report->note(text);
  document_.note(text);
}

void Output::require_enough_rounds(std::size_t sizes, std::size_t rounds) const {
  if (!fail_below_) return;
  for (const Json& baseline : baselines_) bench::require_enough_rounds(baseline, sizes, rounds);
}

std::string Output::compare() {
  if (baselines_.empty()) return {};
  try {
    const Comparison comparison = bench::compare(baselines_, document_.json(), fail_below_);
    if (environment_to_stderr_) std::cerr << to_text(comparison) << std::endl;
    for (auto& report : reports_) report->compare(comparison);
    document_.compare(comparison);
    if (!comparison.is_slower()) return {};
    return fmt::format("slower than --fail-below {} allows; {}", *fail_below_, comparison.verdict());
  } catch (const UsageError& error) {
    return error.what();
  }
}

void Output::write(const Environment& /*environment*/, const RecordedResult& result) {
  document_ = SweepDocument(result.report);
}

void Output::write_whole(const Environment& environment, const WriteWhole& write_to) {
  reports_.clear();
  const std::string warning = oversubscription_warning(environment);
  if (!warning.empty()) complain(warning);
  if (environment_to_stderr_) std::cerr << summarize(environment) << std::flush;
  if (file_.is_open()) write_to(format_, file_);
  write_to(file_.is_open() ? Format::kTable : format_, std::cout);
  if (!page_.is_open()) return;
  std::ostringstream json;
  write_to(Format::kJson, json);
  document_ = SweepDocument(Json::parse(json.str()));
}

bool Output::end() {
  for (auto& report : reports_) report->end();
  reports_.clear();
  if (file_.is_open()) file_.close();
  if (page_.is_open()) {
    write_page(page_, document_.json());
    page_.close();
  }
  std::cout.flush();
  return file_.good() && page_.good() && (std::cout.good() || is_pipe_without_reader(STDOUT_FILENO));
}

}  // namespace cohort::bench
