#include "start/init_time.h"

#include <mpi.h>

namespace cohort::bench {
namespace {

/// MPI calls a function of C, which has no other place for it.
std::chrono::duration<double> taken{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

std::chrono::duration<double> time_of_mpi_init() noexcept { return taken; }

}  // namespace cohort::bench

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const auto start = std::chrono::steady_clock::now();
  const int status = PMPI_Init_thread(argc, argv, required, provided);
  cohort::bench::taken = std::chrono::steady_clock::now() - start;
  return status;
}
