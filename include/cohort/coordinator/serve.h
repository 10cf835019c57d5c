// What the tasks do that do not schedule anything: a parameter server answers requests, and a worker runs
// what the coordinator gives it. The standby of a server on another host copies it, and is the server from
// when that one's host is lost.
//
//     if (strategy.task().type != "chief") return serve(strategy);
#pragma once

#include <cohort/server/parameter_server_strategy.h>

namespace cohort {

/// Returns 0 when the job is over.
/// @throws WrongContext for the chief; Unavailable when the coordinator of a worker is lost; InvalidArgument
/// for a worker whose binary is not the coordinator's; Aborted for a server whose standby has taken over;
/// DataLoss for a standby whose copy differs from what the server has.
int serve(const ParameterServerStrategy& strategy);

}  // namespace cohort
