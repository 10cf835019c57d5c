#include "job_look.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/bytes_text.h"
#include "base/json.h"
#include "collective/record/report_json.h"

namespace cohort {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLookFormat = 1;

/// Of each member: the lines need the last that all have finished, while some are a call ahead.
constexpr std::size_t kLatestCalls = 4;

/// More workers than these have no lines of their own.
constexpr std::size_t kMostRows = 64;

bool is_same(const JobReport& left, const JobReport& right) {
  return left.communicator == right.communicator &&
         std::ranges::equal(left.members, right.members, {}, &ReportedMember::worker,
                            &ReportedMember::worker);
}

/// Of two communicators with the same name and workers each has members that the other one knows, too.
bool complete_each_other(const JobReport& left, const JobReport& right) {
  if (!is_same(left, right)) return false;
  for (std::size_t i = 0; i < left.members.size(); ++i) {
    if (left.members[i].is_readable && right.members[i].is_readable) return false;
  }
  return true;
}

void merge(CommunicatorLook& look, CommunicatorLook part) {
  const auto first = [](const JobReport& report) {
    return std::ranges::find(report.members, true, &ReportedMember::is_readable) - report.members.begin();
  };
  if (first(part.report) < first(look.report)) look.rate = part.rate;
  for (std::size_t i = 0; i < look.report.members.size(); ++i) {
    if (part.report.members[i].is_readable) look.report.members[i] = std::move(part.report.members[i]);
  }
}

std::string rate_in_words(const CallRate& rate) {
  if (rate.calls == 0 || rate.seconds <= 0) return "throughput: no call has ended";
  std::string text = fmt::format("throughput: {:.3g} calls/s, {}/s, over the last {} calls ({})",
                                 static_cast<double>(rate.calls) / rate.seconds,
                                 bytes_text(static_cast<double>(rate.bytes) / rate.seconds), rate.calls,
                                 in_seconds(rate.seconds));
  if (rate.is_timed)
    text += fmt::format(", {:.0f} % of the time in them",
                        std::min(100.0, 100 * rate.seconds_in_calls / rate.seconds));
  return text;
}

std::string memory_in_words(std::uint64_t bytes) {
  return bytes == 0 ? "-" : bytes_text(static_cast<double>(bytes));
}

std::string table_of_memory(const JobLook& look) {
  std::size_t width = 4;
  for (const WorkerLook& worker : look.workers) width = std::max(width, worker.host.size());
  std::string text =
      fmt::format("{:>6}  {:<{}} {:>8} {:>10} {:>10}\n", "worker", "host", width, "pid", "memory", "peak");
  const std::size_t rows = std::min(look.workers.size(), kMostRows);
  for (const WorkerLook& worker : std::span(look.workers).first(rows)) {
    text += fmt::format("{:>6}  {:<{}} {:>8} {:>10} {:>10}\n", worker.worker, worker.host, width, worker.pid,
                        memory_in_words(worker.memory_bytes), memory_in_words(worker.peak_memory_bytes));
  }
  if (look.workers.size() > kMostRows) {
    const auto most = std::ranges::max(look.workers, {}, &WorkerLook::memory_bytes);
    text +=
        fmt::format("and {} more; the most has worker {} (host {}): {}\n", look.workers.size() - kMostRows,
                    most.worker, most.host, memory_in_words(most.memory_bytes));
  }
  return text;
}

JobLook to_look(const Json& document) {
  JobLook look{.job = document.at("job"),
               .chief = document.at("chief_pid"),
               .seconds = document.at("seconds"),
               .restarts = document.at("restarts"),
               .nodes = document.at("nodes"),
               .slow = document.at("slow"),
               .silent = document.at("no_answer")};
  for (const Json& worker : document.at("workers"))
    look.workers.push_back({worker.at("worker"), worker.at("host"), worker.at("pid"),
                            worker.at("memory_bytes"), worker.at("peak_memory_bytes")});
  for (const Json& communicator : document.at("communicators")) {
    const Json& rate = communicator.at("throughput");
    std::optional<JobReport> report = report_in(communicator.at("members"));
    if (!report) throw InvalidArgument("its reports have another format");
    look.communicators.push_back({std::move(*report),
                                  {rate.at("seconds"), rate.at("calls"), rate.at("bytes"),
                                   rate.at("seconds_in_calls"), rate.at("timed")}});
  }
  return look;
}

}  // namespace

CallRate rate_of(const std::vector<RecordedCall>& calls) {
  CallRate rate;
  for (const RecordedCall& call : calls) {
    if (!call.ended) continue;
    ++rate.calls;
    rate.bytes += call.elements * size_of(call.dtype);
    rate.seconds = std::max(rate.seconds, call.arrived_ago);
    if (call.ended_ago)
      rate.seconds_in_calls += call.arrived_ago - *call.ended_ago;
    else
      rate.is_timed = false;
  }
  return rate;
}

void keep_latest_calls(ReportedMember& member) {
  const std::size_t older = member.calls.size() - std::min(member.calls.size(), kLatestCalls);
  std::vector<RecordedCall> kept;
  for (std::size_t i = 0; i < member.calls.size(); ++i) {
    if (i >= older || (member.calls[i].is_open() && kept.size() < kLatestCalls))
      kept.push_back(std::move(member.calls[i]));
  }
  member.calls = std::move(kept);
}

void merge(JobLook& look, JobLook part) {
  std::ranges::move(part.slow, std::back_inserter(look.slow));
  for (WorkerLook& worker : part.workers) {
    const auto place = std::ranges::lower_bound(look.workers, worker.worker, {}, &WorkerLook::worker);
    if (place == look.workers.end() || place->worker != worker.worker)
      look.workers.insert(place, std::move(worker));
    else if (place->memory_bytes == 0)
      *place = std::move(worker);
  }
  for (CommunicatorLook& communicator : part.communicators) {
    const auto same = std::ranges::find_if(look.communicators, [&](const CommunicatorLook& known) {
      return complete_each_other(known.report, communicator.report);
    });
    if (same == look.communicators.end())
      look.communicators.push_back(std::move(communicator));
    else
      merge(*same, std::move(communicator));
  }
}

std::string to_json(const JobLook& look) {
  Json workers = Json::array();
  for (const WorkerLook& worker : look.workers)
    workers.push_back({{"worker", worker.worker},
                       {"host", worker.host},
                       {"pid", worker.pid},
                       {"memory_bytes", worker.memory_bytes},
                       {"peak_memory_bytes", worker.peak_memory_bytes}});
  Json communicators = Json::array();
  for (const auto& [report, rate] : look.communicators)
    communicators.push_back({{"name", report.communicator},
                             {"throughput",
                              {{"seconds", rate.seconds},
                               {"calls", rate.calls},
                               {"bytes", rate.bytes},
                               {"seconds_in_calls", rate.seconds_in_calls},
                               {"timed", rate.is_timed}}},
                             {"members", to_json_value(report)}});
  const Json document{{"cohort_look", kLookFormat},
                      {"job", look.job},
                      {"chief_pid", look.chief},
                      {"seconds", look.seconds},
                      {"restarts", look.restarts},
                      {"nodes", look.nodes},
                      {"slow", look.slow},
                      {"no_answer", look.silent},
                      {"workers", std::move(workers)},
                      {"communicators", std::move(communicators)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

JobLook look_from_json(std::string_view text) {
  int format = 0;
  const auto look = read_json<Json>(text, "a job has answered what is no look at it",
                                    [&](const Json& document) -> std::optional<JobLook> {
                                      format = document.at("cohort_look");
                                      if (format != kLookFormat) return std::nullopt;
                                      return to_look(document);
                                    });
  if (look) return *look;
  throw InvalidArgument("the job's Cohort answers in format {}, and this cohort-info reads format {}", format,
                        kLookFormat);
}

std::string to_text(const JobLook& look) {
  const auto plural = [](std::size_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  std::string text = fmt::format(
      "Job {}: {} on {}, for {}{}\n", look.job, plural(look.workers.size(), "worker"),
      plural(static_cast<std::size_t>(look.nodes), "node"), in_seconds(look.seconds),
      look.restarts == 0 ? "" : ", started again " + plural(static_cast<std::size_t>(look.restarts), "time"));
  for (const std::string& line : look.slow) text += fmt::format("slow: {}\n", line);
  if (!look.silent.empty()) text += fmt::format("no answer from: {}\n", fmt::join(look.silent, ", "));
  for (const auto& [report, rate] : look.communicators) {
    text += '\n';
    for (const std::string& line : lines_of(report)) text += line + '\n';
    text += rate_in_words(rate) + '\n';
    if (report.members.size() <= kMostRows) text += table_of(report);
  }
  return text + '\n' + table_of_memory(look);
}

}  // namespace cohort
