#include <cohort/resolvers/slurm_cluster_resolver.h>

#include "environment_lines.h"
#include "fuzz_one.h"

namespace cohort::fuzz {

void fuzz_one(std::string_view input) {
  // A process that is no task of a step is told so.
  parse_or_refuse(
      [&] {
        const SlurmClusterResolver resolver({.auto_set_gpu = false}, environment_of(input));
        static_cast<void>(resolver.cluster_spec().task_address(*resolver.task_type(), *resolver.task_id()));
        static_cast<void>(resolver.master());
      },
      {ErrorCode::kInvalidArgument, ErrorCode::kUnavailable});
}

}  // namespace cohort::fuzz
