// What a call throws: its code is checked, its text is returned for the test to look at. And the deadline of
// a call that is to throw.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cohort/base/error.h>

namespace cohort::testing {

/// The text of the Error that `function` ends in; a failure of the test when there is none.
template <class Function>
[[nodiscard]] std::string message_of(ErrorCode code, Function&& function) {
  try {
    std::forward<Function>(function)();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown, wanted " << to_string(code);
  return {};
}

/// Matches a message that names `member` as missing, `as` what the call's purpose speaks of. Others may be
/// named with it: on a busy machine a member that is on its way may get no processor time before a short
/// deadline passes.
[[nodiscard]] inline auto names_missing(int member, std::string_view as = "member") {
  return ::testing::ContainsRegex(fmt::format("missing: ({0} .*, )*{0} {1} ", as, member));
}

/// A time-out that a test lets pass, which is soon, in seconds. More members than cores take turns, so it is
/// longer for many: those that have come need the core once before the deadline passes.
[[nodiscard]] inline double short_timeout(int members) { return std::clamp(0.05 * members, 0.15, 0.5); }

}  // namespace cohort::testing
