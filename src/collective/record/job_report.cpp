#include "job_report.h"

#include <algorithm>

#include <fmt/format.h>

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

}  // namespace cohort
