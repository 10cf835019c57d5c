// For tests that run on every rank: the Session that their main has made.
#pragma once

#include <cohort/mpi/session.h>

namespace cohort::testing {

[[nodiscard]] mpi::Session& session();

}  // namespace cohort::testing
