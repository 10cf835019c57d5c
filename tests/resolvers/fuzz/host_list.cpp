#include <stdexcept>

#include "fuzz_one.h"
#include "resolvers/list_notations.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    for (const std::string& host : expand_host_list(input))
      if (host.empty() || host.find_first_of("[], ") != std::string::npos)
        throw std::runtime_error("'" + host + "' is no host's name");
  });
}

}  // namespace cohort::fuzz
