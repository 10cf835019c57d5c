// What a call throws: its code is checked, its text is returned for the test to look at.
#pragma once

#include <string>
#include <utility>

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

}  // namespace cohort::testing
