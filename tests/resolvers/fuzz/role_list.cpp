#include <stdexcept>

#include "fuzz_one.h"
#include "resolvers/list_notations.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    std::string again;
    for (const RoleCount& role : parse_role_list(input)) {
      if (role.tasks < 1 || role.job.empty()) throw std::runtime_error("a role of nobody");
      again += (again.empty() ? "" : ",") + role.job + "=" + std::to_string(role.tasks);
    }
    if (parse_role_list(again).empty()) throw std::runtime_error("roles that get lost");
  });
}

}  // namespace cohort::fuzz
