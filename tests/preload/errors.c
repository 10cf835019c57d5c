/* Calls that cannot end well. `errors differ`: rank 0 makes a larger all-reduce than the others; `errors kill`:
   rank 1 ends itself; `errors blocks` and `errors large-blocks`: rank 1 sends rank 0 more than that expects;
   `errors astray HOW`: all ranks but the first call something else, or what only the MPI carries out;
   `errors arguments`: each call has one that is wrong, which the MPI reports. With an error handler that returns,
   every other rank gets an error whose text names it. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static double data[1024], sums[1024];

static int class_of(int status) {
  int class_of_error = MPI_SUCCESS;
  MPI_Error_class(status, &class_of_error);
  return class_of_error;
}

static int report(int rank, int status) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  printf("rank %d: %s: %s\n", rank, class_of(status) == MPI_ERR_OTHER ? "MPI_ERR_OTHER" : "another class", text);
  fflush(stdout);
  return status == MPI_SUCCESS ? 0 : 3;
}

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

/* Of few elements, or of many. The communicator can be used afterwards. */
static int wrong_block(int rank, int elements, MPI_Comm comm) {
  static double data[100000], sums[100000];
  int counts[64] = {0}, expected[64] = {0}, offsets[64] = {0};
  if (rank == 1) counts[0] = elements;
  if (rank == 0) expected[1] = elements - 1;
  const int status = MPI_Alltoallv(data, counts, offsets, MPI_DOUBLE, sums, expected, offsets, MPI_DOUBLE, comm);
  MPI_Barrier(comm);
  return report(rank, status);
}

/* Calls that differ, of which some are Cohort's and others the MPI's. */
static int astray(int rank, const char* how, MPI_Comm comm) {
  int counts[64], offsets[64], status = MPI_SUCCESS;
  for (int i = 0; i < 64; ++i) counts[i] = 1, offsets[i] = i;
  const double start = MPI_Wtime();
  if (strcmp(how, "larger") == 0 || strcmp(how, "nearly") == 0) { /* sizes on both sides of a limit, or next to each other */
    const int own = how[0] == 'l' ? 100 : 63, of_others = how[0] == 'l' ? 1000 : 64;
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    status = MPI_Allreduce(data, sums, rank == 0 ? own : of_others, MPI_DOUBLE, op, comm);
  } else if (strcmp(how, "other") == 0) {
    status = rank == 0 ? MPI_Barrier(comm) : MPI_Scan(data, sums, 10, MPI_DOUBLE, MPI_SUM, comm);
  } else if (strcmp(how, "after") == 0) { /* rank 0 has sent, and has gone on */
    if (rank == 0) MPI_Bcast(data, 10, MPI_DOUBLE, 0, comm);
    status = rank == 0 ? MPI_Barrier(comm) : MPI_Scan(data, sums, 10, MPI_DOUBLE, MPI_SUM, comm);
  } else if (strcmp(how, "pairs") == 0) { /* the others do not wait in the MPI's call, and come to one like rank 0's */
    if (rank != 0) MPI_Gatherv(data, 1, MPI_DOUBLE, sums, counts, offsets, MPI_DOUBLE, 0, comm);
    status = MPI_Barrier(comm);
    if (status == MPI_SUCCESS) status = MPI_Barrier(comm);
  } else if (strcmp(how, "ahead") == 0) { /* the others have sent, and have gone on */
    if (rank != 0) MPI_Reduce(data, sums, 10, MPI_INT, MPI_SUM, 0, comm);
    status = MPI_Barrier(comm);
  } else if (strcmp(how, "scans") == 0) { /* of one size and operator, with oneself and without */
    status = rank == 0 ? MPI_Exscan(data, sums, 20, MPI_DOUBLE, MPI_SUM, comm) : MPI_Scan(data, sums, 20, MPI_DOUBLE, MPI_SUM, comm);
  } else if (strcmp(how, "end") == 0) {
    status = rank == 0 ? MPI_Barrier(comm) : MPI_Finalize();
  } else { /* a call that the MPI refuses is none */
    if (rank == 0 && MPI_Scan(data, sums, -1, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS) return 1;
    for (int i = 0; i < 20 && status == MPI_SUCCESS; ++i) {
      if (rank == i % 2) usleep(5000);
      status = MPI_Barrier(comm);
    }
  }
  if (MPI_Wtime() - start > 4) puts("this took long");
  return report(rank, status);
}

/* Without the library, too. */
static int wrong_arguments(int rank, MPI_Comm comm) {
  int size = 0, wrong = 0;
  MPI_Comm_size(comm, &size);
  wrong += class_of(MPI_Bcast(data, 100, MPI_DATATYPE_NULL, 0, comm)) != MPI_ERR_TYPE;
  wrong += class_of(MPI_Bcast(data, -1, MPI_DOUBLE, 0, comm)) != MPI_ERR_COUNT;
  wrong += class_of(MPI_Bcast(data, 100, MPI_DOUBLE, size, comm)) != MPI_ERR_ROOT;
  wrong += class_of(MPI_Allreduce(data, sums, 100, MPI_DOUBLE, MPI_OP_NULL, comm)) != MPI_ERR_OP;
  wrong += class_of(MPI_Allreduce(data, sums, 100, MPI_DOUBLE, MPI_BAND, comm)) != MPI_ERR_OP;
  wrong += class_of(MPI_Scan(data, sums, 100, MPI_DOUBLE, MPI_BAND, comm)) != MPI_ERR_OP;
  wrong += class_of(MPI_Exscan(data, sums, 100, MPI_DOUBLE, MPI_OP_NULL, comm)) != MPI_ERR_OP;
  /* One rank alone: it is not to wait for the others. */
  MPI_Comm fresh;
  MPI_Op op;
  MPI_Comm_dup(comm, &fresh); /* with its error handler */
  MPI_Op_create(add, 1, &op);
  if (rank == 1) {
    wrong += class_of(MPI_Reduce(data, sums, 100, MPI_DOUBLE, op, size, fresh)) != MPI_ERR_ROOT;
    wrong += class_of(MPI_Reduce(data, sums, 100, MPI_DOUBLE, MPI_SUM, -5, fresh)) != MPI_ERR_ROOT;
    wrong += MPI_Reduce(data, MPI_IN_PLACE, 100, MPI_DOUBLE, op, 1, fresh) == MPI_SUCCESS;
  }
  MPI_Op_free(&op);
  MPI_Comm_free(&fresh);
  if (wrong == 0) puts("all errors are right");
  return wrong;
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allreduce(data, sums, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (argc == 2 && strcmp(argv[1], "kill") == 0 && rank == 1) kill(getpid(), SIGKILL);
  if (argc == 2 && strcmp(argv[1], "arguments") == 0) return wrong_arguments(rank, MPI_COMM_WORLD) + MPI_Finalize();
  if (argc == 2 && strcmp(argv[1], "blocks") == 0) return wrong_block(rank, 3, MPI_COMM_WORLD) + MPI_Finalize();
  if (argc == 2 && strcmp(argv[1], "large-blocks") == 0) return wrong_block(rank, 100000, MPI_COMM_WORLD) + MPI_Finalize();
  if (argc == 3 && strcmp(argv[1], "astray") == 0) {
    const int wrong = astray(rank, argv[2], MPI_COMM_WORLD);
    if (wrong == 0) return MPI_Finalize();
    if (rank != 0) sleep(60); /* rank 0 says so as well, and with it the launcher ends all */
    _exit(wrong);             /* the MPI may wait for ever */
  }
  const int status = MPI_Allreduce(data, sums, rank == 0 ? 1000 : 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const int result = report(rank, status);
  /* The launcher ends all when the first one ends. By its PMPI name it is not the library's, whose communicator has failed. */
  if (argc == 2 && strcmp(argv[1], "differ") == 0) PMPI_Barrier(MPI_COMM_WORLD);
  _exit(result);
}
