// How long MPI_Init_thread has taken in this process, which the Session calls: measured by MPI's own
// interface for profilers, a function of the program in front of the library's.
#pragma once

#include <chrono>

namespace cohort::bench {

/// Zero if it has not been called.
[[nodiscard]] std::chrono::duration<double> time_of_mpi_init() noexcept;

}  // namespace cohort::bench
