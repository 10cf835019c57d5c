// The values of single options, parsed and checked.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <cohort/base/error.h>

#include "errors.h"

namespace cohort::bench {

/// @throws UsageError unless `text` is a whole number from 1 to `most`.
[[nodiscard]] int parse_count(std::string_view option, const std::string& text, int most);

/// @throws UsageError unless `text` is a number of milliseconds from 0 to an hour.
[[nodiscard]] double parse_milliseconds(std::string_view option, const std::string& text);

/// True for `first`, false for `second`. @throws UsageError for anything else.
[[nodiscard]] bool parse_choice(std::string_view option, const std::string& text, std::string_view first,
                                std::string_view second);

/// What the library's own parsers throw, with the option's name in front.
template <class Parse>
auto parse_value(std::string_view option, Parse&& parse) {
  try {
    return std::forward<Parse>(parse)();
  } catch (const InvalidArgument& error) {
    throw UsageError("{}: {}", option, error.what());
  }
}

}  // namespace cohort::bench
