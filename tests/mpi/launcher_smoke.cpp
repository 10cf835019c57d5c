// MPI alone, without Cohort: when this fails, the launcher or the MPI library is broken,
// and no test that needs them can say anything about Cohort.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int sum = 0;
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (sum == size * (size + 1) / 2) return 0;
  std::fprintf(stderr, "rank %d: the sum of 1 to %d is not %d\n", rank, size, sum);
  return 1;
}
