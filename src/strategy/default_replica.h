// The replica context of code outside any scope: replica 0 of the default strategy.
#pragma once

#include <cohort/strategy/replica_context.h>

namespace cohort {

[[nodiscard]] ReplicaContext& default_replica();

}  // namespace cohort
