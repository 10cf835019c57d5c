/* Times the collectives of whichever MPI it runs with: a program that knows nothing of Cohort, for
   benchmarks/accelerate.sh. Calls follow each other as in a program, with the program's own memory, and inputs are
   written anew before each call; the time of writing alone is taken off. A time is the slowest rank's.

   mpi_collectives [SECONDS]: prints "COLLECTIVE BYTES MICROSECONDS", the median over batches of calls; SECONDS is
   about what each line may take, default 0.1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kLargest = 4 << 20, kMostBatches = 2000 };

static int rank, size;
static double *input, *output;
static int *counts, *offsets;

static void all_reduce(int count) { MPI_Allreduce(input, output, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void reduce(int count) { MPI_Reduce(input, output, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }
static void broadcast(int count) { MPI_Bcast(input, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void all_gather(int count) {
  MPI_Allgather(input, count / size, MPI_DOUBLE, output, count / size, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void reduce_scatter(int count) {
  MPI_Reduce_scatter_block(input, output, count / size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void all_to_all(int count) {
  MPI_Alltoall(input, count / size, MPI_DOUBLE, output, count / size, MPI_DOUBLE, MPI_COMM_WORLD);
}
/* Every second block is half as large as the others. */
static void all_to_all_v(int count) {
  for (int m = 0; m < size; ++m) {
    counts[m] = (rank + m) % 2 ? count / size / 2 : count / size;
    offsets[m] = m * (count / size);
  }
  MPI_Alltoallv(input, counts, offsets, MPI_DOUBLE, output, counts, offsets, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void gather(int count) {
  MPI_Gather(input, count / size, MPI_DOUBLE, output, count / size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void scatter(int count) {
  MPI_Scatter(input, count / size, MPI_DOUBLE, output, count / size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void barrier(int count) {
  (void)count;
  MPI_Barrier(MPI_COMM_WORLD);
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void nothing(int count) { (void)count; }

/* Of one batch of calls, by the slowest rank; in seconds. */
static double time_of(void (*call)(int), int count, int calls) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double start = PMPI_Wtime();
  for (int n = 0; n < calls; ++n) {
    for (int i = 0; i < count; ++i) input[i] = n + i % 7;
    call(count);
  }
  double took = PMPI_Wtime() - start;
  PMPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return took;
}

static void measure(const char* name, void (*call)(int), int count, double seconds) {
  static double times[kMostBatches];
  const int calls = count > 8192 ? 4 : 100;
  int batches = 0, goes_on = 1;
  time_of(call, count, calls); /* pays for what happens once */
  const double begin = PMPI_Wtime();
  while (goes_on) {
    times[batches++] = (time_of(call, count, calls) - time_of(nothing, count, calls)) / calls;
    goes_on = batches < kMostBatches && (batches < 9 || PMPI_Wtime() - begin < seconds);
    PMPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  qsort(times, batches, sizeof *times, ascending);
  if (rank == 0) printf("%s %zu %.3f\n", name, count * sizeof(double), times[batches / 2] * 1e6);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double seconds = argc > 1 ? atof(argv[1]) : 0.1;
  input = calloc(kLargest, 1);
  output = calloc(kLargest, 1);
  counts = calloc(size, sizeof *counts);
  offsets = calloc(size, sizeof *offsets);
  const struct {
    const char* name;
    void (*call)(int);
    int shares;
  } collectives[] = {{"all_reduce", all_reduce, 0}, {"reduce", reduce, 0},
                     {"broadcast", broadcast, 0},   {"all_gather", all_gather, 1},
                     {"reduce_scatter", reduce_scatter, 1}, {"all_to_all", all_to_all, 1},
                     {"all_to_all_v", all_to_all_v, 1}, {"gather", gather, 1}, {"scatter", scatter, 1}};
  measure("barrier", barrier, 0, seconds);
  for (int c = 0; c < (int)(sizeof collectives / sizeof *collectives); ++c)
    for (int bytes = 8; bytes <= kLargest; bytes *= bytes < 64 ? 2 : 4)
      if (!collectives[c].shares || bytes / (int)sizeof(double) >= size)
        measure(collectives[c].name, collectives[c].call, bytes / (int)sizeof(double), seconds);
  free(input);
  free(output);
  free(counts);
  free(offsets);
  MPI_Finalize();
  return 0;
}
