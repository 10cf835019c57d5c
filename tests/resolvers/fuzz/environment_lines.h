// A process's environment as a fuzzer's input.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <cohort/base/environment.h>

namespace cohort::fuzz {

/// One variable per line, as NAME=VALUE; lines of another form are left out.
[[nodiscard]] inline Environment environment_of(std::string_view lines) {
  Environment variables;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string_view line = lines.substr(begin, end - begin);
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) variables.emplace(line.substr(0, equals), line.substr(equals + 1));
    begin = end + 1;
  }
  return variables;
}

}  // namespace cohort::fuzz
