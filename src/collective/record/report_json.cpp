#include "report_json.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cohort/base/error.h>

#include "base/json.h"

namespace cohort {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates{ProcessState::kUnknown, ProcessState::kRunning, ProcessState::kStopped,
                             ProcessState::kGone};

Json or_null(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

std::optional<double> optional_number(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

const char* state_of(const RecordedCall& call) {
  if (call.failed) return "failed";
  if (call.ended) return "ended";
  return call.started_ago ? "all there" : "waiting";
}

Json to_json_value(const RecordedCall& call) {
  Json value{{"call", to_string(call.kind)}};
  if (is_message(call.kind)) {
    value["tag"] = call.tag;
    value["peer"] = call.root;
  } else {
    value["number"] = call.number;
    if (has_root(call.kind)) value["root"] = call.root;
  }
  if (reduces(call.kind)) value["op"] = to_string(call.op);
  value["dtype"] = to_string(call.dtype);
  value["elements"] = call.elements;
  value["bytes"] = call.elements * size_of(call.dtype);
  if (call.priority == Priority::kUrgent) value["urgent"] = true;
  if (!call.words.empty()) value["purpose"] = call.words;
  value["state"] = state_of(call);
  value["arrived_seconds_ago"] = call.arrived_ago;
  value["started_seconds_ago"] = or_null(call.started_ago);
  value["ended_seconds_ago"] = or_null(call.ended_ago);
  return value;
}

CollectiveKind parse_kind(const std::string& name) {
  const auto found = std::ranges::find(kCollectives, name, &CollectiveTraits::name);
  if (found == kCollectives.end()) throw InvalidArgument("there is no call '{}'", name);
  return found->kind;
}

RecordedCall to_call(const Json& value) {
  RecordedCall call;
  call.kind = parse_kind(value.at("call"));
  call.tag = value.value("tag", 0);
  call.root = value.value(is_message(call.kind) ? "peer" : "root", 0);
  call.number = value.value("number", std::uint64_t{0});
  if (reduces(call.kind)) call.op = parse_reduce_op(value.at("op").get<std::string>());
  call.dtype = parse_dtype(value.at("dtype").get<std::string>());
  call.elements = value.at("elements");
  call.priority = value.value("urgent", false) ? Priority::kUrgent : Priority::kNormal;
  call.words = value.value("purpose", "");
  const std::string state = value.at("state");
  call.failed = state == "failed";
  call.ended = state == "ended";
  call.arrived_ago = value.at("arrived_seconds_ago");
  call.started_ago = optional_number(value.at("started_seconds_ago"));
  call.ended_ago = optional_number(value.at("ended_seconds_ago"));
  return call;
}

Json to_json_value(const ReportedMember& member) {
  Json value{{"rank", member.rank}, {"worker", member.worker}, {"host", member.host}};
  value["recorded"] = member.is_readable;
  if (!member.is_readable) return value;
  Json calls = Json::array();
  for (const RecordedCall& call : member.calls) calls.push_back(to_json_value(call));
  value["pid"] = member.pid;
  value["process"] = to_string(member.process);
  value["left"] = member.has_left;
  value["collectives_begun"] = member.begun;
  value["collectives_finished"] = finished(member);
  value["torn_entries"] = member.torn;
  value["calls"] = std::move(calls);
  return value;
}

ReportedMember to_member(const Json& value) {
  ReportedMember member{.rank = value.at("rank"), .worker = value.at("worker"), .host = value.at("host")};
  member.is_readable = value.at("recorded");
  if (!member.is_readable) return member;
  member.pid = value.at("pid");
  const std::string process = value.at("process");
  for (const ProcessState state : kStates) {
    if (to_string(state) == process) member.process = state;
  }
  member.has_left = value.at("left");
  member.begun = value.at("collectives_begun");
  member.torn = value.at("torn_entries");
  for (const Json& call : value.at("calls")) member.calls.push_back(to_call(call));
  return member;
}

}  // namespace

std::optional<JobReport> report_in(const Json& document) {
  if (document.at("cohort_report") != kReportFormat) return std::nullopt;
  const Json& error = document.at("error");
  JobReport report{.communicator = document.at("communicator"),
                   .time = document.at("time"),
                   .host = document.at("host"),
                   .worker = document.at("worker"),
                   .error_code = error.at("code"),
                   .error = error.at("text"),
                   .error_call = error.at("call"),
                   .error_member = error.at("member")};
  for (const Json& member : document.at("members")) report.members.push_back(to_member(member));
  for (const Json& line : document.value("slow", Json::array())) report.slow.push_back(line);
  return report;
}

Json to_json_value(const JobReport& report) {
  Json members = Json::array();
  for (const ReportedMember& member : report.members) members.push_back(to_json_value(member));
  return {{"cohort_report", kReportFormat},
          {"time", report.time},
          {"host", report.host},
          {"worker", report.worker},
          {"communicator", report.communicator},
          {"error",
           {{"code", report.error_code},
            {"text", report.error},
            {"call", report.error_call},
            {"member", report.error_member}}},
          {"lines", lines_of(report)},
          {"slow", report.slow},
          {"members", std::move(members)}};
}

std::string to_json(const JobReport& report) {
  return to_json_value(report).dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

JobReport report_from_json(std::string_view text, std::string_view name) {
  int format = 0;
  const auto report = read_json<Json>(text, fmt::format("{} is no report that COHORT_REPORT has named", name),
                                      [&](const Json& document) {
                                        format = document.at("cohort_report");
                                        return report_in(document);
                                      });
  if (report) return *report;
  throw InvalidArgument("{}: a report of format {}, and this cohort-info reads format {}", name, format,
                        kReportFormat);
}

}  // namespace cohort
