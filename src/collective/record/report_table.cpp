#include "report_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "report_lines.h"

namespace cohort {
namespace {

std::string activity_of(const ReportedMember& member) {
  if (!member.is_readable) return "see the report of its host";
  const RecordedCall* call = open_collective(member);
  if (call == nullptr) call = open_message(member);
  if (call != nullptr) {
    return fmt::format("in {}{} for {}", to_string(*call), call->started_ago ? ", all there," : "",
                       in_seconds(call->arrived_ago));
  }
  if (member.calls.empty()) return "no call";
  const RecordedCall& last = member.calls.back();
  return fmt::format("after {}, {} {} ago", to_string(last), last.ended_ago ? "which ended" : "begun",
                     in_seconds(last.ended_ago.value_or(last.arrived_ago)));
}

}  // namespace

std::string table_of(const JobReport& report) {
  std::size_t width = 4;
  for (const ReportedMember& member : report.members) width = std::max(width, member.host.size());
  std::string text = fmt::format("{:>5} {:>6}  {:<{}}  {:<8} {:>9}  {}\n", "rank", "worker", "host", width,
                                 "process", "finished", "call");
  for (const ReportedMember& member : report.members) {
    std::string process(member.is_readable ? to_string(member.process) : "-");
    if (member.has_left && member.process == ProcessState::kRunning) process = "left";
    text += fmt::format("{:>5} {:>6}  {:<{}}  {:<8} {:>9}  {}\n", member.rank, member.worker, member.host,
                        width, process, member.is_readable ? fmt::format("{}", finished(member)) : "-",
                        activity_of(member));
  }
  return text;
}

}  // namespace cohort
