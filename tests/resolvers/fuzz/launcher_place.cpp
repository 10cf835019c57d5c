#include <stdexcept>

#include "cluster/launcher.h"
#include "environment_lines.h"
#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    const auto place = launcher_place(environment_of(input));
    if (place && (place->rank < 0 || place->rank >= place->size.value_or(place->rank + 1)))
      throw std::runtime_error("a rank outside its job");
  });
}

}  // namespace cohort::fuzz
