#include "output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "errors.h"
#include "report.h"

namespace cohort::bench {
namespace {

bool is_pipe_without_reader(int descriptor) {
  pollfd waited{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&waited, 1, 0) == 1 && (waited.revents & POLLERR) != 0;
}

}  // namespace

void complain(const std::string& text) { std::cerr << "cohort-bench: " + text + "\n" << std::flush; }

Output::Output(const RunOptions& run) : format_(run.format) {
  if (!run.output) {
    reports_.push_back(make_sweep_report(run.format, std::cout));
    environment_to_stderr_ = run.format == Format::kCsv;
    return;
  }
  file_.open(*run.output);
  if (!file_) {
    throw UsageError("--output {}: cannot be written ({}); name a file in a folder that exists and is yours",
                     *run.output, std::strerror(errno));
  }
  // While the report goes to a file, the table on the screen shows the progress.
  reports_.push_back(make_sweep_report(run.format, file_));
  reports_.push_back(make_sweep_report(Format::kTable, std::cout));
}

void Output::begin(const Environment& environment, const std::string& subject) {
  const std::string warning = oversubscription_warning(environment);
  if (!warning.empty()) complain(warning);
  if (environment_to_stderr_) std::cerr << summarize(environment) << "# " << subject << std::endl;
  for (auto& report : reports_) report->begin(environment, subject);
}

void Output::add(std::span<const SweepRow> rows) {
  for (auto& report : reports_) {
    for (const SweepRow& row : rows) report->add(row);
  }
}

void Output::note(const std::string& text) {
  if (environment_to_stderr_) complain(text);
  for (auto& report : reports_) report->note(text);
}

void Output::write_whole(const Environment& environment, const WriteWhole& write_to) {
  reports_.clear();
  const std::string warning = oversubscription_warning(environment);
  if (!warning.empty()) complain(warning);
  if (environment_to_stderr_) std::cerr << summarize(environment) << std::flush;
  if (file_.is_open()) write_to(format_, file_);
  write_to(file_.is_open() ? Format::kTable : format_, std::cout);
}

bool Output::end() {
  for (auto& report : reports_) report->end();
  reports_.clear();
  if (file_.is_open()) file_.close();
  std::cout.flush();
  return file_.good() && (std::cout.good() || is_pipe_without_reader(STDOUT_FILENO));
}

}  // namespace cohort::bench
