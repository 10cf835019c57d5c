/* A session of MPI 4 before MPI_Init and beside it: collectives on its communicator are right at any time. */
#include <mpi.h>
#include <stdio.h>

static int wrong;

static void sum_up(MPI_Comm comm) {
  int size;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 10; ++i) {
    const double one = 1;
    double sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    wrong += sum != size;
  }
}

int main(int argc, char** argv) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  sum_up(comm);
  MPI_Init(&argc, &argv);
  sum_up(MPI_COMM_WORLD);
  sum_up(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  sum_up(MPI_COMM_WORLD);
  MPI_Finalize();
  if (wrong == 0) puts("all sums are right");
  return wrong == 0 ? 0 : 1;
}
