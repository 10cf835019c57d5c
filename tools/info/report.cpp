#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "base/regular_file.h"
#include "cluster/fd.h"
#include "collective/record/report_json.h"
#include "collective/record/report_lines.h"
#include "collective/record/report_table.h"
#include "facts.h"

namespace cohort::info {

namespace {

int open_report(const std::string& file) {
  try {
    return open_regular_file(file, "report");
  } catch (const Error& error) {
    throw InvalidArgument("--report: {}", error.what());
  }
}

}  // namespace

ReportFacts read_report(const std::string& file) {
  const watch::Fd descriptor(open_report(file));
  std::string json;
  std::array<char, 1 << 16> part{};
  while (true) {
    const ssize_t bytes = ::read(descriptor.get(), part.data(), part.size());
    if (bytes == 0) break;
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) throw Unavailable("{} cannot be read: {}", file, std::strerror(errno));
    json.append(part.data(), static_cast<std::size_t>(bytes));
  }
  JobReport report = report_from_json(json, file);
  return {.json = std::move(json), .report = std::move(report)};
}

std::string to_text(const ReportFacts& facts) {
  std::string text = fmt::format("Report of host {}, {}\n\n", facts.report.host, facts.report.time);
  for (const std::string& line : lines_of(facts.report)) text += line + '\n';
  return text + '\n' + table_of(facts.report);
}

/// Without the newline at its end, which every answer gets.
std::string to_json(const ReportFacts& facts) {
  return facts.json.substr(0, facts.json.find_last_not_of('\n') + 1);
}

}  // namespace cohort::info
