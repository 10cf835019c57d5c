// The environment variables of this process, as a value: what reads them takes one, so
// that tests can hand in another.
#pragma once

#include <map>
#include <string>

namespace cohort {

using Environment = std::map<std::string, std::string, std::less<>>;

[[nodiscard]] Environment process_environment();

}  // namespace cohort
