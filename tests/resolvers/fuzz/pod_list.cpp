#include <cohort/resolvers/kubernetes_cluster_resolver.h>

#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  // A pod that does not run yet is no mistake in the text.
  parse_or_refuse(
      [&] {
        const KubernetesClusterResolver resolver(input, {.own_pod = "cohort-0"}, {});
        static_cast<void>(resolver.master());
      },
      {ErrorCode::kInvalidArgument, ErrorCode::kUnavailable});
}

}  // namespace cohort::fuzz
