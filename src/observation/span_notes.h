// How workers tell the chief of their programs' spans. Sent as raw bytes: the same program runs everywhere.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/timeline_spans.h"

namespace cohort {

/// Times are in nanoseconds of the chief's steady clock.
struct WorkerSpan {
  int worker = 0;
  FinishedSpan span = {};
};

[[nodiscard]] std::vector<std::string> to_notes(std::span<const WorkerSpan> spans);

/// Nothing if the note is none of these.
[[nodiscard]] std::optional<std::vector<WorkerSpan>> spans_of_note(std::string_view note);

}  // namespace cohort
