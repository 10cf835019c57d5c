#include "role_list.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <cohort/base/error.h>

namespace cohort {
namespace {

[[noreturn]] void refuse(std::string_view text, std::size_t position, std::string_view why) {
  throw InvalidArgument(
      "roles '{}' are wrong at character {}: {}; the form is chief=1,worker=3,evaluator=1,ps=1", text,
      position + 1, why);
}

}  // namespace

std::vector<RoleCount> parse_role_list(std::string_view text) {
  std::vector<RoleCount> roles;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view entry = text.substr(begin, end - begin);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0)
      refuse(text, begin, "a job and its number of tasks are missing");
    RoleCount role{std::string(entry.substr(0, equals))};
    const char* last = entry.data() + entry.size();
    const auto [stopped, status] = std::from_chars(entry.data() + equals + 1, last, role.tasks);
    if (status != std::errc() || stopped != last || role.tasks < 1)
      refuse(text, begin + equals + 1, "a number of tasks from 1 is missing");
    for (const RoleCount& other : roles)
      if (other.job == role.job) refuse(text, begin, fmt::format("the job '{}' is listed twice", role.job));
    roles.push_back(std::move(role));
    begin = end + 1;
  }
  return roles;
}

}  // namespace cohort
