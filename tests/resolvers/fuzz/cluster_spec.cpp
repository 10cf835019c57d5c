#include <stdexcept>

#include <cohort/cluster/cluster_spec_json.h>

#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    const ClusterSpec spec = cluster_spec_from_json(input);
    if (cluster_spec_from_json(to_json(spec)) != spec)
      throw std::runtime_error("a cluster that JSON changes");
  });
}

}  // namespace cohort::fuzz
