// What a supervisor has to say about its tasks: lines on standard error.
#pragma once

#include <string_view>

namespace cohort::supervise {

/// Writes `cohort-supervise: TEXT` as one line, in one piece.
void say(std::string_view text);

}  // namespace cohort::supervise
