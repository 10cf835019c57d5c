/* A program whose MPI ends in a function that it has given to atexit() before MPI began: static objects of what was loaded
   since have been destroyed by then. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int size;

static void make_calls(void) {
  for (int i = 0; i < 10; ++i) {
    double one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* So that nothing is left of what was freed. */
static void take_freed_memory(void) {
  for (size_t bytes = 16; bytes <= 512; bytes += 16)
    for (int i = 0; i < 200; ++i) memset(malloc(bytes), 0xff, bytes);
}

static void end(void) {
  int rank;
  take_freed_memory();
  make_calls();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Finalize();
  if (rank == 0) puts("MPI has ended");
}

int main(int argc, char** argv) {
  atexit(end);
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  make_calls();
  return 0;
}
