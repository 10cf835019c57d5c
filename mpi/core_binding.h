// Cores for the workers of a host whose launcher left them all the same ones.
#pragma once

#include "worker_group.h"

namespace cohort::mpi {

/// Gives this process its share of the cores that it and others of its host may run on, unless it does not
/// want to be bound. The first worker of a host with more workers than cores says so. Collective.
void bind_cores(WorkerGroup& everyone, bool wanted);

}  // namespace cohort::mpi
