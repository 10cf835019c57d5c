// The numbers of a run in the text format of Prometheus, version 0.0.4, for the text-file collector of its
// node exporter. Always the same series, from the first file on, whatever the job does;
// docs/what-went-wrong.md lists them.
#pragma once

#include <span>
#include <string>

#include <cohort/cluster/worker.h>

#include "run_numbers.h"

namespace cohort {

[[nodiscard]] std::string prometheus_text(const RunNumbers& numbers, std::span<const WorkerInfo> workers,
                                          double seconds);

}  // namespace cohort
