#include "mpi_team.h"

#include <exception>

namespace cohort::bench {

MpiTeam::MpiTeam() {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &handle_), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiTeam::~MpiTeam() {
  // While an exception is on its way the other ranks may be anywhere; the session ends the job.
  if (std::uncaught_exceptions() == 0) MPI_Comm_free(&handle_);
}

void MpiTeam::barrier() const { check_mpi(MPI_Barrier(handle_), "MPI_Barrier"); }

int MpiTeam::from_first(int value) const {
  check_mpi(MPI_Bcast(&value, 1, MPI_INT, 0, handle_), "MPI_Bcast");
  return value;
}

void MpiTeam::take_maximum(std::span<double> values) const {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX,
                          handle_),
            "MPI_Allreduce");
}

std::uint64_t MpiTeam::sum(std::uint64_t value) const {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_UINT64_T, MPI_SUM, handle_), "MPI_Allreduce");
  return value;
}

bool MpiTeam::shares_a_clock() const {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(handle_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type");
  int on_node = 0;
  int all = 0;
  check_mpi(MPI_Comm_size(node, &on_node), "MPI_Comm_size");
  check_mpi(MPI_Comm_size(handle_, &all), "MPI_Comm_size");
  check_mpi(MPI_Comm_free(&node), "MPI_Comm_free");
  // One node may hold all of them, and then every rank sees as many as there are.
  return sum(on_node == all ? 0 : 1) == 0;
}

}  // namespace cohort::bench
