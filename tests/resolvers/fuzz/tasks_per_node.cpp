#include <stdexcept>

#include "fuzz_one.h"
#include "resolvers/list_notations.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    for (const int tasks : expand_tasks_per_node(input))
      if (tasks < 0) throw std::runtime_error("a number of tasks below 0");
  });
}

}  // namespace cohort::fuzz
