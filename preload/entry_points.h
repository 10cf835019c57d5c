// The functions that libcohort-mpi.so and libcohort-mpi-large.so have in place of those of the MPI library,
// with their numbers of arguments. Each argument is an integer or a pointer, so that the number is all that a
// call needs to be passed on, whichever MPI it is for.
#pragma once

/// COHORT_X(NAME, ARGUMENTS): the collectives of C that Cohort may carry out.
#define COHORT_C_COLLECTIVES(COHORT_X)  \
  COHORT_X(MPI_Barrier, 1)              \
  COHORT_X(MPI_Bcast, 5)                \
  COHORT_X(MPI_Reduce, 7)               \
  COHORT_X(MPI_Allreduce, 6)            \
  COHORT_X(MPI_Allgather, 7)            \
  COHORT_X(MPI_Allgatherv, 8)           \
  COHORT_X(MPI_Gather, 8)               \
  COHORT_X(MPI_Scatter, 8)              \
  COHORT_X(MPI_Reduce_scatter, 6)       \
  COHORT_X(MPI_Reduce_scatter_block, 6) \
  COHORT_X(MPI_Alltoall, 7)             \
  COHORT_X(MPI_Alltoallv, 9)

/// COHORT_X(NAME, ARGUMENTS): those that stay the MPI's.
#define COHORT_C_COLLECTIVES_OF_MPI(COHORT_X) \
  COHORT_X(MPI_Gatherv, 9)                    \
  COHORT_X(MPI_Scatterv, 9)                   \
  COHORT_X(MPI_Alltoallw, 9)                  \
  COHORT_X(MPI_Scan, 6)                       \
  COHORT_X(MPI_Exscan, 6)

/// COHORT_X(NAME, ARGUMENTS): all functions of C.
#define COHORT_C_ENTRY_POINTS(COHORT_X) \
  COHORT_X(MPI_Init, 2)                 \
  COHORT_X(MPI_Init_thread, 4)          \
  COHORT_X(MPI_Finalize, 0)             \
  COHORT_X(MPI_Comm_free, 1)            \
  COHORT_X(MPI_Comm_disconnect, 1)      \
  COHORT_X(MPI_Win_create, 6)           \
  COHORT_X(MPI_Win_allocate, 6)         \
  COHORT_X(MPI_Win_create_dynamic, 3)   \
  COHORT_C_COLLECTIVES(COHORT_X)        \
  COHORT_C_COLLECTIVES_OF_MPI(COHORT_X)

/// COHORT_X(NAME, ARGUMENTS): those of MPI 4, whose counts are larger than an int. In a library of their own,
/// since programs ask whether their MPI has these functions by looking for them.
#define COHORT_LARGE_COUNT_ENTRY_POINTS(COHORT_X) \
  COHORT_X(MPI_Bcast_c, 5)                        \
  COHORT_X(MPI_Reduce_c, 7)                       \
  COHORT_X(MPI_Allreduce_c, 6)                    \
  COHORT_X(MPI_Allgather_c, 7)                    \
  COHORT_X(MPI_Allgatherv_c, 8)                   \
  COHORT_X(MPI_Gather_c, 8)                       \
  COHORT_X(MPI_Scatter_c, 8)                      \
  COHORT_X(MPI_Reduce_scatter_c, 6)               \
  COHORT_X(MPI_Reduce_scatter_block_c, 6)         \
  COHORT_X(MPI_Alltoall_c, 7)                     \
  COHORT_X(MPI_Alltoallv_c, 9)                    \
  COHORT_X(MPI_Gatherv_c, 9)                      \
  COHORT_X(MPI_Scatterv_c, 9)                     \
  COHORT_X(MPI_Alltoallw_c, 9)                    \
  COHORT_X(MPI_Scan_c, 6)                         \
  COHORT_X(MPI_Exscan_c, 6)

/// COHORT_X(NAME, ARGUMENTS): the functions of Fortran, which have a place for the error code more. Only Open
/// MPI's call those of C by their PMPI names, past us; MPICH's and Intel's call MPI_Bcast and so on.
/// NAME is without the underscores of compilers: see COHORT_FORTRAN_NAMES.
#define COHORT_FORTRAN_ENTRY_POINTS(COHORT_X) \
  COHORT_X(mpi_init, 1)                       \
  COHORT_X(mpi_init_thread, 3)                \
  COHORT_X(mpi_finalize, 1)                   \
  COHORT_X(mpi_comm_free, 2)                  \
  COHORT_X(mpi_comm_disconnect, 2)            \
  COHORT_X(mpi_win_create, 7)                 \
  COHORT_X(mpi_win_allocate, 7)               \
  COHORT_X(mpi_win_allocate_cptr, 7)          \
  COHORT_X(mpi_win_create_dynamic, 4)         \
  COHORT_X(mpi_barrier, 2)                    \
  COHORT_X(mpi_bcast, 6)                      \
  COHORT_X(mpi_reduce, 8)                     \
  COHORT_X(mpi_allreduce, 7)                  \
  COHORT_X(mpi_allgather, 8)                  \
  COHORT_X(mpi_allgatherv, 9)                 \
  COHORT_X(mpi_gather, 9)                     \
  COHORT_X(mpi_scatter, 9)                    \
  COHORT_X(mpi_reduce_scatter, 7)             \
  COHORT_X(mpi_reduce_scatter_block, 7)       \
  COHORT_X(mpi_alltoall, 8)                   \
  COHORT_X(mpi_alltoallv, 10)                 \
  COHORT_X(mpi_gatherv, 10)                   \
  COHORT_X(mpi_scatterv, 10)                  \
  COHORT_X(mpi_alltoallw, 10)                 \
  COHORT_X(mpi_scan, 7)                       \
  COHORT_X(mpi_exscan, 7)

/// COHORT_X(NAME, ARGUMENTS): mpif.h and `use mpi` with one or two underscores, and `use mpi_f08`, where the
/// place for the error code may be null.
#define COHORT_FORTRAN_NAMES(COHORT_X, NAME, ARGUMENTS) \
  COHORT_X(NAME##_, ARGUMENTS)                          \
  COHORT_X(NAME##__, ARGUMENTS)                         \
  COHORT_X(NAME##_f08_, ARGUMENTS)
