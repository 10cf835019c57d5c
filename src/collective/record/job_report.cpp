#include "job_report.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/error.h>

namespace cohort {

std::string to_string(const RecordedCall& call) {
  const std::string data = fmt::format("{}[{}]", to_string(call.dtype), call.elements);
  if (is_message(call.kind)) {
    return fmt::format("{} ({}, {} rank {}, tag {})", to_string(call.kind), data,
                       call.kind == CollectiveKind::kSend ? "to" : "from", call.root, call.tag);
  }
  std::string text = fmt::format("{} #{}", to_string(call.kind), call.number);
  const bool has_data = traits_of(call.kind).input != CollectiveTraits::Extent::kNothing;
  if (has_data && call.kind != CollectiveKind::kSplit) {
    text += fmt::format(" ({}", data);
    if (reduces(call.kind)) text += fmt::format(", {}", to_string(call.op));
    if (has_root(call.kind)) text += fmt::format(", root {}", call.root);
    text += call.priority == Priority::kUrgent ? ", urgent)" : ")";
  }
  return call.words.empty() ? text : fmt::format("{}, which {}", text, call.words);
}

const RecordedCall* open_collective(const ReportedMember& member) noexcept {
  const RecordedCall* oldest = nullptr;
  for (const RecordedCall& call : member.calls) {
    if (is_message(call.kind) || !call.is_open()) continue;
    if (oldest == nullptr || call.number < oldest->number) oldest = &call;
  }
  return oldest;
}

const RecordedCall* open_message(const ReportedMember& member) noexcept {
  const auto found = std::ranges::find_if(
      member.calls, [](const RecordedCall& call) { return is_message(call.kind) && call.is_open(); });
  return found == member.calls.end() ? nullptr : &*found;
}

std::uint64_t finished(const ReportedMember& member) noexcept {
  const RecordedCall* const open = open_collective(member);
  return open == nullptr ? member.begun : open->number;
}

// The report in words.

namespace {

using Members = std::vector<const ReportedMember*>;

/// Entries of a line; more are counted only.
constexpr std::size_t kMostEntries = 4;

/// Members in the same state, in words.
struct Entry {
  std::string state;
  Members members;
};

Members members_that(const JobReport& report, const std::function<bool(const ReportedMember&)>& are_meant) {
  Members found;
  for (const ReportedMember& member : report.members) {
    if (are_meant(member)) found.push_back(&member);
  }
  return found;
}

void add(std::vector<Entry>& entries, std::string state, const ReportedMember& member) {
  const auto found = std::ranges::find(entries, state, &Entry::state);
  if (found == entries.end())
    entries.push_back({std::move(state), {&member}});
  else
    found->members.push_back(&member);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string line = fmt::format(
      "{}",
      fmt::join(texts.begin(),
                texts.begin() + static_cast<std::ptrdiff_t>(std::min(texts.size(), kMostEntries)), "; "));
  if (texts.size() > kMostEntries) line += fmt::format("; and {} more groups", texts.size() - kMostEntries);
  return line;
}

/// `for 0.3 s`, or `for 0.3 s to 0.4 s` where members came at different times.
std::string span_of_times(std::span<const double> times) {
  const auto [shortest, longest] = std::ranges::minmax(times);
  const std::string from = in_seconds(shortest);
  const std::string to = in_seconds(longest);
  return from == to ? from : fmt::format("{} to {}", from, to);
}

/// The call that the member is in: a collective if there is one, or a message.
const RecordedCall* open_call(const ReportedMember& member) {
  const RecordedCall* const collective = open_collective(member);
  return collective != nullptr ? collective : open_message(member);
}

/// The latest of its collectives that the record still has; null: none.
const RecordedCall* last_collective(const ReportedMember& member) {
  const auto found = std::find_if(member.calls.rbegin(), member.calls.rend(),
                                  [](const RecordedCall& call) { return !is_message(call.kind); });
  return found == member.calls.rend() ? nullptr : &*found;
}

/// As many collectives as the member that has come furthest has finished or is in.
std::uint64_t furthest(const JobReport& report) {
  std::uint64_t count = 0;
  for (const ReportedMember& member : report.members) {
    const RecordedCall* const open = open_collective(member);
    count = std::max(count, open == nullptr ? 0 : open->number + 1);
  }
  return count;
}

std::string line_of_error(const JobReport& report) {
  const Members readable = members_that(report, [](const auto& member) { return member.is_readable; });
  std::string seen;
  if (readable.size() < report.members.size()) seen = fmt::format(", seen by {}", name_members(readable));
  if (report.error.empty())
    return fmt::format("communicator {} of {} member{}{}: no error", report.communicator,
                       report.members.size(), report.members.size() == 1 ? "" : "s", seen);
  // The error's text ends with advice, which the exception has in full.
  constexpr std::size_t kMostOfText = 300;
  std::string text = shortened(report.error, kMostOfText);
  std::ranges::replace(text, '\n', ' ');
  return fmt::format("communicator {} of {} member{}{} failed: {}", report.communicator,
                     report.members.size(), report.members.size() == 1 ? "" : "s", seen, text);
}

/// What these members have recorded of the collective of this number.
std::vector<const RecordedCall*> records_of(std::uint64_t number, const Members& members) {
  std::vector<const RecordedCall*> records;
  for (const ReportedMember* member : members) {
    const auto found = std::ranges::find_if(member->calls, [&](const RecordedCall& call) {
      return !is_message(call.kind) && call.number == number;
    });
    if (found != member->calls.end()) records.push_back(&*found);
  }
  return records;
}

/// When the last of them was done. A call without a time ended when its last member arrived.
double end_of(const std::vector<const RecordedCall*>& records) {
  double ago = records.front()->arrived_ago;
  for (const RecordedCall* record : records)
    ago = std::min(ago, record->ended_ago.value_or(record->arrived_ago));
  return ago;
}

std::string line_of_finished(const JobReport& report, const Members& readable) {
  if (readable.empty()) return "finished by all: not known";
  std::uint64_t count = finished(*readable.front());
  for (const ReportedMember* member : readable) count = std::min(count, finished(*member));
  if (count == 0) return "finished by all: no collective";
  const std::vector<const RecordedCall*> records = records_of(count - 1, readable);
  if (records.empty()) return fmt::format("finished by all: #{}, of which no record is left", count - 1);
  const char* here = readable.size() < report.members.size() ? " of this node" : "";
  return fmt::format("finished by all{}: {}, {} ago", here, to_string(*records.front()),
                     in_seconds(end_of(records)));
}

std::string line_of_open_calls(const Members& readable) {
  std::vector<Entry> entries;
  for (const ReportedMember* member : readable) {
    const RecordedCall* const call = open_call(*member);
    if (call != nullptr)
      add(entries, fmt::format("{}{}", to_string(*call), call->started_ago ? ", all there," : ""), *member);
  }
  if (entries.empty()) return "in a call: nobody";
  std::vector<std::string> texts;
  for (const Entry& entry : entries) {
    std::vector<double> times;
    for (const ReportedMember* member : entry.members) times.push_back(open_call(*member)->arrived_ago);
    texts.push_back(
        fmt::format("{} in {} for {}", name_members(entry.members), entry.state, span_of_times(times)));
  }
  return "in a call: " + joined(texts);
}

/// What a member did last that has not come to the call that others wait in.
std::string latest_of(const ReportedMember& member) {
  const RecordedCall* const call = last_collective(member);
  if (call == nullptr)
    return member.begun == 0 ? "has made no collective" : "its latest collective is not recorded";
  return "last in " + to_string(*call);
}

std::string line_of_missing(const JobReport& report, const Members& readable) {
  const std::uint64_t wanted = furthest(report);
  std::vector<Entry> entries;
  for (const ReportedMember* member : readable) {
    if (member->begun < wanted) add(entries, latest_of(*member), *member);
  }
  if (entries.empty()) return "not arrived: nobody";
  std::vector<std::string> texts;
  for (const Entry& entry : entries) {
    std::vector<double> times;
    for (const ReportedMember* member : entry.members) {
      const RecordedCall* const call = last_collective(*member);
      if (call != nullptr) times.push_back(call->ended_ago.value_or(call->arrived_ago));
    }
    texts.push_back(fmt::format("{}, {}{}", name_members(entry.members), entry.state,
                                times.empty() ? "" : fmt::format(", {} ago", span_of_times(times))));
  }
  return "not arrived: " + joined(texts);
}

std::string line_of_dead(const JobReport& report) {
  std::vector<std::string> texts;
  const auto say = [&](std::string_view what, const std::function<bool(const ReportedMember&)>& are_meant) {
    const Members members = members_that(report, are_meant);
    if (members.empty()) return;
    std::string pid;
    if (members.size() == 1 && members.front()->pid != 0) pid = fmt::format(", pid {}", members.front()->pid);
    texts.push_back(fmt::format("{}: {}{}", what, name_members(members), pid));
  };
  say("died", [](const ReportedMember& member) { return member.process == ProcessState::kGone; });
  if (texts.empty()) texts.emplace_back("died: nobody");
  say("out of reach", [&](const ReportedMember& member) {
    return member.rank == report.error_member && report.error_code == to_string(ErrorCode::kUnavailable) &&
           member.process != ProcessState::kGone && member.process != ProcessState::kStopped;
  });
  say("stopped", [](const ReportedMember& member) { return member.process == ProcessState::kStopped; });
  say("left",
      [](const ReportedMember& member) { return member.has_left && member.process != ProcessState::kGone; });
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string ranges_of(std::span<const int> ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += end == i + 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string name_members(std::span<const ReportedMember* const> members) {
  if (members.size() == 1)
    return fmt::format("rank {} (worker {}, host {})", members.front()->rank, members.front()->worker,
                       members.front()->host);
  std::vector<int> ranks;
  std::set<std::string> hosts;
  for (const ReportedMember* member : members) {
    ranks.push_back(member->rank);
    hosts.insert(member->host);
  }
  constexpr std::size_t kMostHosts = 4;
  const std::string where = hosts.size() > kMostHosts ? fmt::format("{} hosts", hosts.size())
                                                      : fmt::format("host{} {}", hosts.size() == 1 ? "" : "s",
                                                                    fmt::join(hosts, ", "));
  return fmt::format("ranks {} ({})", ranges_of(ranks), where);
}

std::string in_seconds(double seconds) {
  return seconds > 0 && seconds < 1e-3 ? fmt::format("{:.0f} us", seconds * 1e6)
                                       : fmt::format("{:.3g} s", seconds);
}

std::vector<std::string> lines_of(const JobReport& report) {
  const Members readable = members_that(report, [](const auto& member) { return member.is_readable; });
  std::vector<std::string> lines{line_of_error(report), line_of_finished(report, readable),
                                 line_of_open_calls(readable), line_of_missing(report, readable),
                                 line_of_dead(report)};
  for (const std::string& line : report.slow) lines.push_back("slow before: " + line);
  return lines;
}

namespace {

/// What a row of the table says of the member's calls.
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
