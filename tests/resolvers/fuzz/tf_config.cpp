#include <cohort/resolvers/tf_config_cluster_resolver.h>

#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  parse_or_refuse([&] {
    const TfConfigClusterResolver resolver({}, {{"TF_CONFIG", std::string(input)}});
    static_cast<void>(resolver.cluster_spec());
    static_cast<void>(resolver.master());  // an address that the cluster need not have
  });
}

}  // namespace cohort::fuzz
