/* Calls that cannot end well. `errors differ`: rank 0 makes a larger all-reduce than the others; `errors kill`:
   rank 1 ends itself. With an error handler that returns, every other rank gets an error whose text names it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  static double data[1024], sums[1024];
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allreduce(data, sums, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (argc == 2 && strcmp(argv[1], "kill") == 0 && rank == 1) kill(getpid(), SIGKILL);
  const int status = MPI_Allreduce(data, sums, rank == 0 ? 1000 : 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, class_of_error = MPI_SUCCESS;
  MPI_Error_string(status, text, &length);
  MPI_Error_class(status, &class_of_error);
  printf("rank %d: %s: %s\n", rank, class_of_error == MPI_ERR_OTHER ? "MPI_ERR_OTHER" : "another class", text);
  fflush(stdout);
  /* Nobody can go on with a communicator that has failed. */
  _exit(status == MPI_SUCCESS ? 0 : 3);
}
