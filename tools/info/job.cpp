// What a job says of itself: one that runs, to who asks it; one that has failed, in the report that it left.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "cluster/job_socket.h"
#include "cluster/sockets.h"
#include "collective/record/job_report.h"
#include "facts.h"

namespace cohort::info {
namespace {

using namespace std::chrono_literals;

/// Twice what the job itself waits for its nodes, and some.
constexpr auto kTimeToAnswer = 3s;
constexpr auto kBetweenLooks = 1s;

/// The sockets of one run of a job: one for each node that this host has of it.
using Run = std::vector<JobSocket>;

/// @throws InvalidArgument where it is not clear which job is meant.
Run find_run(const std::string& job) {
  std::vector<Run> runs;
  for (const JobSocket& socket : jobs_of_this_user()) {
    if (!job.empty() && socket.job != job && fmt::format("{}", socket.chief) != job) continue;
    if (runs.empty() || runs.back().front().job != socket.job || runs.back().front().chief != socket.chief)
      runs.emplace_back();
    runs.back().push_back(socket);
  }
  if (runs.size() == 1) return runs.front();
  if (runs.empty())
    throw InvalidArgument(
        "--job: no job of yours{} has workers on this host ({}); run cohort-info on a host of the job, or in "
        "its container",
        job.empty() ? "" : fmt::format(" with the name {}", job), host_name());
  std::vector<std::string> names;
  names.reserve(runs.size());
  const bool by_chief =
      std::ranges::all_of(runs, [&](const Run& run) { return run.front().job == runs.front().front().job; });
  for (const Run& run : runs)
    names.push_back(by_chief ? fmt::format("{}", run.front().chief) : run.front().job);
  throw InvalidArgument("--job: choose one of {}", fmt::join(names, ", "));
}

/// By the first of its processes that answers.
JobLook look_at(const Run& run) {
  for (std::size_t i = 0;; ++i) {
    try {
      return look_from_json(read_from(run[i], kTimeToAnswer));
    } catch (const Unavailable&) {
      if (i + 1 == run.size()) throw;
    }
  }
}

}  // namespace

JobLook look_at_job(const std::string& job) { return look_at(find_run(job)); }

void watch_job(const std::string& job, const std::function<std::string(const JobLook&)>& show) {
  const Run run = find_run(job);
  const bool redraws = ::isatty(STDOUT_FILENO) == 1;
  while (true) {
    const JobLook look = look_at(run);
    if (redraws) std::cout << "\x1b[H\x1b[J";  // to the top, and all below it is cleared
    std::cout << show(look) << std::flush;
    if (!std::cout) return;
    std::this_thread::sleep_for(kBetweenLooks);
    const std::vector<JobSocket> present = jobs_of_this_user();
    const bool goes_on = std::ranges::any_of(present, [&](const JobSocket& socket) {
      return socket.job == run.front().job && socket.chief == run.front().chief;
    });
    if (!goes_on) return;
  }
}

// The report.

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
