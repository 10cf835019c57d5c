// A fuzz target: one parser, called by `fuzz_one`. The same source makes a CTest entry, which replays a
// corpus, and under Clang a program for libFuzzer (cmake/FuzzTarget.cmake).
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include <cohort/base/error.h>

namespace cohort::fuzz {

/// Feeds the parser `input`, which can be anything. Each target defines it.
/// @throws for a finding; sanitizers' reports and exceeded time limits are findings, too.
void fuzz_one(std::string_view input);

/// Runs `parse`, which may refuse its input by an Error with one of these codes and a message.
/// @throws std::logic_error when it ends by another exception.
void parse_or_refuse(const std::function<void()>& parse,
                     std::initializer_list<ErrorCode> refusals = {ErrorCode::kInvalidArgument});

}  // namespace cohort::fuzz
