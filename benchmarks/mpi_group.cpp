#include "mpi_group.h"

#include <array>
#include <exception>
#include <string_view>

#include <cohort/base/error.h>

namespace cohort::bench {

void check_mpi(int code, const char* function) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Unavailable("{} failed: {}", function,
                    std::string_view(text.data(), static_cast<std::size_t>(length)));
}

MpiGroup::MpiGroup() {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &handle_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiGroup::~MpiGroup() {
  // While an exception is on its way the other ranks may be anywhere; the session ends the job.
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&handle_);
}

void MpiGroup::barrier() const { check_mpi(MPI_Barrier(handle_), "MPI_Barrier"); }

int MpiGroup::from_rank_0(int value) const {
  check_mpi(MPI_Bcast(&value, 1, MPI_INT, 0, handle_), "MPI_Bcast");
  return value;
}

void MpiGroup::take_maximum(std::span<double> values) const {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                          handle_),
            "MPI_Allreduce");
}

std::uint64_t MpiGroup::sum(std::uint64_t value) const {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, handle_), "MPI_Allreduce");
  return value;
}

}  // namespace cohort::bench
