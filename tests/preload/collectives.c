/* A program that knows nothing of Cohort: every collective that libcohort-mpi.so may carry out, with every
   kind of argument, checked element by element. It ends with 0 only if all results are right.

   collectives [CALLS]: on two ranks, so many small calls are to take no more memory than few; default 100000. */
#include <complex.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"

/* Element i of member m. Sums of eight members fit a signed char, where Open MPI's would saturate. */
static int value(int m, int i) { return 1 + m + i % 5; }

static int sum_of(int i) {
  int sum = 0;
  for (int m = 0; m < size; ++m) sum += value(m, i);
  return sum;
}

#define REDUCTIONS(Name, Type, type)                                                         \
  static void reductions_of_##Name(MPI_Comm comm, int count) {                               \
    Type* const in = malloc(sizeof(Type) * (count + 1));                                     \
    Type* const out = malloc(sizeof(Type) * (count + 1));                                    \
    for (int i = 0; i < count; ++i) in[i] = (Type)value(rank, i);                            \
    memset(out, 0, sizeof(Type) * (count + 1));                                              \
    MPI_Allreduce(in, out, count, type, MPI_SUM, comm);                                      \
    for (int i = 0; i < count; ++i) CHECK(out[i] == (Type)sum_of(i));                        \
    CHECK(out[count] == 0);                                                                  \
    MPI_Allreduce(in, out, count, type, MPI_MAX, comm);                                      \
    for (int i = 0; i < count; ++i) CHECK(out[i] == (Type)value(size - 1, i));               \
    MPI_Allreduce(in, out, count, type, MPI_MIN, comm);                                      \
    for (int i = 0; i < count; ++i) CHECK(out[i] == (Type)value(0, i));                      \
    for (int i = 0; i < count; ++i) out[i] = in[i];                                          \
    MPI_Allreduce(MPI_IN_PLACE, out, count, type, MPI_SUM, comm);                            \
    for (int i = 0; i < count; ++i) CHECK(out[i] == (Type)sum_of(i));                        \
    for (int root = 0; root < size; ++root) {                                                \
      memset(out, 0, sizeof(Type) * (count + 1));                                            \
      MPI_Reduce(in, rank == root ? out : NULL, count, type, MPI_SUM, root, comm);           \
      for (int i = 0; i < count && rank == root; ++i) CHECK(out[i] == (Type)sum_of(i));      \
    }                                                                                        \
    for (int i = 0; i < count; ++i) out[i] = in[i];                                          \
    if (rank == 0)                                                                           \
      MPI_Reduce(MPI_IN_PLACE, out, count, type, MPI_SUM, 0, comm);                          \
    else                                                                                     \
      MPI_Reduce(out, NULL, count, type, MPI_SUM, 0, comm);                                  \
    for (int i = 0; i < count && rank == 0; ++i) CHECK(out[i] == (Type)sum_of(i));           \
    free(in);                                                                                \
    free(out);                                                                               \
  }

REDUCTIONS(signed_char, signed char, MPI_SIGNED_CHAR)
REDUCTIONS(unsigned_char, unsigned char, MPI_UNSIGNED_CHAR)
REDUCTIONS(short, short, MPI_SHORT)
REDUCTIONS(unsigned_short, unsigned short, MPI_UNSIGNED_SHORT)
REDUCTIONS(int, int, MPI_INT)
REDUCTIONS(unsigned, unsigned, MPI_UNSIGNED)
REDUCTIONS(long, long, MPI_LONG)
REDUCTIONS(unsigned_long, unsigned long, MPI_UNSIGNED_LONG)
REDUCTIONS(long_long, long long, MPI_LONG_LONG)
REDUCTIONS(int8, int8_t, MPI_INT8_T)
REDUCTIONS(uint64, uint64_t, MPI_UINT64_T)
REDUCTIONS(float, float, MPI_FLOAT)
REDUCTIONS(double, double, MPI_DOUBLE)
REDUCTIONS(long_double, long double, MPI_LONG_DOUBLE)

static void complex_sums(MPI_Comm comm, int count) {
  double complex* const in = malloc(sizeof(double complex) * (count + 1));
  double complex* const out = malloc(sizeof(double complex) * (count + 1));
  for (int i = 0; i < count; ++i) in[i] = value(rank, i) + I * value(rank, i + 1);
  MPI_Allreduce(in, out, count, MPI_C_DOUBLE_COMPLEX, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) CHECK(out[i] == sum_of(i) + I * sum_of(i + 1));
  MPI_Allreduce(in, out, count < 3 ? count : 3, MPI_C_DOUBLE_COMPLEX, MPI_PROD, comm);
  for (int i = 0; i < count && i < 3; ++i) {
    double complex product = 1;
    for (int m = 0; m < size; ++m) product *= value(m, i) + I * value(m, i + 1);
    CHECK(cabs(out[i] - product) <= 1e-9 * cabs(product));
  }
  free(in);
  free(out);
}

static void movement(MPI_Comm comm, int count) {
  int* const one = malloc(sizeof(int) * (count + 1));
  int* const many = malloc(sizeof(int) * (count * size + 1));
  int* const other = malloc(sizeof(int) * (count * size + 1));
  for (int root = 0; root < size; ++root) {
    for (int i = 0; i < count; ++i) one[i] = rank == root ? value(root, i) : -1;
    MPI_Bcast(one, count, MPI_INT, root, comm);
    for (int i = 0; i < count; ++i) CHECK(one[i] == value(root, i));

    for (int i = 0; i < count; ++i) one[i] = value(rank, i);
    memset(many, 0xff, sizeof(int) * (count * size + 1));
    MPI_Gather(one, count, MPI_INT, rank == root ? many : NULL, count, MPI_INT, root, comm);
    for (int i = 0; i < count * size && rank == root; ++i) CHECK(many[i] == value(i / count, i % count));
    CHECK(many[count * size] == -1);
    if (rank == root) {
      memset(many, 0xff, sizeof(int) * (count * size + 1));
      memcpy(many + root * count, one, sizeof(int) * count);
      MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, count, MPI_INT, root, comm);
      for (int i = 0; i < count * size; ++i) CHECK(many[i] == value(i / count, i % count));
    } else {
      MPI_Gather(one, count, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, root, comm);
    }

    for (int i = 0; i < count * size; ++i) many[i] = value(i / count, i % count);
    memset(one, 0, sizeof(int) * (count + 1));
    MPI_Scatter(rank == root ? many : NULL, count, MPI_INT, one, count, MPI_INT, root, comm);
    for (int i = 0; i < count; ++i) CHECK(one[i] == value(rank, i));
    if (rank == root) {
      MPI_Scatter(many, count, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, comm);
      for (int i = 0; i < count * size; ++i) CHECK(many[i] == value(i / count, i % count));
    } else {
      memset(one, 0, sizeof(int) * (count + 1));
      MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, one, count, MPI_INT, root, comm);
      for (int i = 0; i < count; ++i) CHECK(one[i] == value(rank, i));
    }
  }

  for (int i = 0; i < count; ++i) one[i] = value(rank, i);
  memset(many, 0xff, sizeof(int) * (count * size + 1));
  MPI_Allgather(one, count, MPI_INT, many, count, MPI_INT, comm);
  for (int i = 0; i < count * size; ++i) CHECK(many[i] == value(i / count, i % count));
  CHECK(many[count * size] == -1);
  memset(many, 0xff, sizeof(int) * (count * size + 1));
  memcpy(many + rank * count, one, sizeof(int) * count);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, count, MPI_INT, comm);
  for (int i = 0; i < count * size; ++i) CHECK(many[i] == value(i / count, i % count));

  for (int i = 0; i < count * size; ++i) many[i] = value(rank * size + i / count, i % count);
  memset(other, 0xff, sizeof(int) * (count * size + 1));
  MPI_Alltoall(many, count, MPI_INT, other, count, MPI_INT, comm);
  for (int i = 0; i < count * size; ++i) CHECK(other[i] == value(i / count * size + rank, i % count));
  CHECK(other[count * size] == -1);
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, count, MPI_INT, comm);
  for (int i = 0; i < count * size; ++i) CHECK(many[i] == value(i / count * size + rank, i % count));

  for (int i = 0; i < count * size; ++i) many[i] = value(rank, i);
  memset(one, 0xff, sizeof(int) * (count + 1));
  MPI_Reduce_scatter_block(many, one, count, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) CHECK(one[i] == sum_of(rank * count + i));
  CHECK(one[count] == -1);
  int* const counts = malloc(sizeof(int) * size);
  for (int m = 0; m < size; ++m) counts[m] = count;
  MPI_Reduce_scatter(many, one, counts, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) CHECK(one[i] == sum_of(rank * count + i));
  MPI_Reduce_scatter_block(MPI_IN_PLACE, many, count, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) CHECK(many[i] == sum_of(rank * count + i));
  free(counts);
  free(one);
  free(many);
  free(other);
}

/* Member m brings m + 1 elements, or none; with and without gaps, and in the reverse order. */
static void uneven(MPI_Comm comm) {
  int counts[64], offsets[64], own[128], all[8192];
  for (int way = 0; way < 4; ++way) {
    int total = 0;
    for (int m = 0; m < size; ++m) {
      counts[m] = way == 3 && m % 2 == 0 ? 0 : m + 1;
      offsets[m] = way == 2 ? (size - m) * 70 : total + (way == 1 ? m : 0);
      total += counts[m];
    }
    memset(all, 0xff, sizeof all);
    for (int i = 0; i < counts[rank]; ++i) own[i] = value(rank, i);
    MPI_Allgatherv(own, counts[rank], MPI_INT, all, counts, offsets, MPI_INT, comm);
    for (int m = 0; m < size; ++m)
      for (int i = 0; i < counts[m]; ++i) CHECK(all[offsets[m] + i] == value(m, i));
    memset(all, 0xff, sizeof all);
    for (int i = 0; i < counts[rank]; ++i) all[offsets[rank] + i] = value(rank, i);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, offsets, MPI_INT, comm);
    for (int m = 0; m < size; ++m)
      for (int i = 0; i < counts[m]; ++i) CHECK(all[offsets[m] + i] == value(m, i));
  }
}

/* Elements from member a to member b, as many as back: few, of some hundred, many, none but from one to another one,
   and as many each time. */
enum { kUnevenWays = 6 };
static int block(int way, int a, int b) {
  switch (way) {
    case 0: return a + b;
    case 1: return 300 + 10 * (a + b);
    case 2: return 5000 + a + b;
    case 3: return a + b == 1 ? 100000 : 0;
    case 4: return 4000;
    default: return 0;
  }
}
static int block_value(int a, int b, int i) { return 1000 * a + 100 * b + i % 97; }

/* In the order of the members and against it, with gaps, received as another datatype, and in place. */
static void uneven_blocks(MPI_Comm comm) {
  const char* const calls = getenv("COHORT_MPI_CALLS");
  const int by_mpi = calls != NULL && strcmp(calls, "none") == 0;
  int counts[64], offsets[64], twice[64], none[64] = {0};
  MPI_Datatype spread;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  for (int round = 0; round < 4 * kUnevenWays; ++round) {
    const int way = round % kUnevenWays, backwards = round / kUnevenWays == 1, gaps = round / kUnevenWays == 2;
    int total = 0;
    for (int k = 0; k < size; ++k) {
      const int m = backwards ? size - 1 - k : k;
      counts[m] = block(way, rank, m);
      offsets[m] = total;
      total += counts[m] + (gaps ? 3 : 0);
    }
    for (int m = 0; m < size; ++m) twice[m] = 2 * offsets[m];
    int* const out = malloc(sizeof(int) * (total + 1));
    int* const in = malloc(2 * sizeof(int) * (total + 1));
    for (int m = 0; m < size; ++m)
      for (int i = 0; i < counts[m]; ++i) out[offsets[m] + i] = block_value(rank, m, i);
    memset(in, 0xff, 2 * sizeof(int) * (total + 1));
    MPI_Alltoallv(out, counts, offsets, MPI_INT, in, counts, offsets, MPI_INT, comm);
    for (int m = 0; m < size; ++m)
      for (int i = 0; i < counts[m] + (gaps ? 3 : 0); ++i)
        CHECK(in[offsets[m] + i] == (i < counts[m] ? block_value(m, rank, i) : -1));
    CHECK(in[total] == -1);
    memset(in, 0xff, 2 * sizeof(int) * (total + 1));
    MPI_Alltoallv(out, counts, offsets, MPI_INT, in, counts, offsets, spread, comm);
    for (int m = 0; m < size; ++m)
      for (int i = 0; i < counts[m]; ++i)
        CHECK(in[twice[m] + 2 * i] == block_value(m, rank, i) && in[twice[m] + 2 * i + 1] == -1);
    /* Open MPI 4.1 has none in place that is right. */
    if (!by_mpi && way != 3) {
      MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out, counts, offsets, MPI_INT, comm);
      for (int m = 0; m < size; ++m)
        for (int i = 0; i < counts[m]; ++i) CHECK(out[offsets[m] + i] == block_value(m, rank, i));
    }
    free(in);
    free(out);
  }
  MPI_Type_free(&spread);
  MPI_Alltoallv(twice, none, none, MPI_INT, offsets, none, none, MPI_INT, comm);
  /* Elements without data need no memory, and one member may have some. */
  MPI_Datatype nothing;
  MPI_Type_contiguous(0, MPI_INT, &nothing);
  MPI_Type_commit(&nothing);
  for (int m = 0; m < size; ++m) counts[m] = 1;
  MPI_Alltoallv(rank == 0 ? NULL : twice, counts, none, nothing, offsets, counts, none, nothing, comm);
  MPI_Type_free(&nothing);
}

/* Of two members and then of all, of which the others have had no such call. */
static void uneven_blocks_of_communicators(MPI_Comm comm) {
  static int out[64 * 1000], in[64 * 1000];
  int counts[64], offsets[64];
  for (int turn = 0; turn < 2; ++turn) {
    const int count = turn == 0 ? 1000 : 4, members = turn == 0 && size > 2 ? 2 : size;
    MPI_Comm some;
    MPI_Comm_split(comm, rank < members ? 0 : MPI_UNDEFINED, rank, &some);
    for (int m = 0; m < members; ++m) {
      counts[m] = count;
      offsets[m] = m * count;
      for (int i = 0; i < count; ++i) out[m * count + i] = block_value(rank, m, i);
    }
    for (int call = 0; call < 6 && some != MPI_COMM_NULL; ++call) {
      memset(in, 0xff, sizeof in);
      MPI_Alltoallv(out, counts, offsets, MPI_INT, in, counts, offsets, MPI_INT, some);
      for (int i = 0; i < members * count; ++i) CHECK(in[i] == block_value(i / count, rank, i % count));
    }
    if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
  }
}

/* Datatypes with gaps, that differ between members, and whose data is out of order. */
static void derived_datatypes(MPI_Comm comm) {
  enum { kRows = 5, kColumns = 4 };
  int matrix[kRows][kColumns], column_of[64 * kRows];
  MPI_Datatype column, resized, backwards;
  MPI_Type_vector(kRows, 1, kColumns, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &resized);
  MPI_Type_commit(&column);
  MPI_Type_commit(&resized);
  const int places[kRows] = {4, 3, 2, 1, 0};
  MPI_Type_create_indexed_block(kRows, 1, places, MPI_INT, &backwards);
  MPI_Type_commit(&backwards);

  for (int root = 0; root < size; ++root) {
    for (int i = 0; i < kRows * kColumns; ++i) matrix[i / kColumns][i % kColumns] = rank == root ? i : -1;
    if (rank == root) {
      MPI_Bcast(&matrix[0][1], 1, column, root, comm);
    } else {
      int received[kRows];
      MPI_Bcast(received, kRows, MPI_INT, root, comm);
      for (int i = 0; i < kRows; ++i) CHECK(received[i] == i * kColumns + 1);
    }
    int line[kRows];
    for (int i = 0; i < kRows; ++i) line[i] = rank == root ? i : -1;
    MPI_Bcast(line, rank % 2 == root % 2 ? kRows : 1, rank % 2 == root % 2 ? MPI_INT : backwards, root, comm);
    for (int i = 0; i < kRows; ++i) CHECK(line[i] == (rank % 2 == root % 2 ? i : kRows - 1 - i));
  }

  for (int i = 0; i < kRows * kColumns; ++i) matrix[i / kColumns][i % kColumns] = value(rank, i);
  MPI_Allgather(&matrix[0][2], 1, column, column_of, kRows, MPI_INT, comm);
  for (int i = 0; i < kRows * size; ++i) CHECK(column_of[i] == value(i / kRows, i % kRows * kColumns + 2));
  if (size <= kColumns) {
    int block[kRows];
    for (int i = 0; i < kRows; ++i) block[i] = value(rank, i);
    memset(matrix, 0xff, sizeof matrix);
    MPI_Allgather(block, kRows, MPI_INT, matrix, 1, resized, comm);
    for (int m = 0; m < size; ++m)
      for (int i = 0; i < kRows; ++i) CHECK(matrix[i][m] == value(m, i));
    for (int m = size; m < kColumns; ++m) CHECK(matrix[0][m] == -1);
    memset(matrix, 0xff, sizeof matrix);
    MPI_Gather(block, kRows, MPI_INT, matrix, 1, resized, 0, comm);
    for (int i = 0; i < kRows && rank == 0; ++i) CHECK(matrix[i][size - 1] == value(size - 1, i));
    MPI_Scatter(matrix, 1, resized, block, kRows, MPI_INT, 0, comm);
    for (int i = 0; i < kRows; ++i) CHECK(block[i] == value(rank, i));
  }
  MPI_Type_free(&column);
  MPI_Type_free(&resized);
  MPI_Type_free(&backwards);
}

/* Rows without gaps, and data that counts from MPI_BOTTOM. */
static void rows_and_addresses(MPI_Comm comm) {
  enum { kMost = 64, kEach = 300 };
  double own[kEach], all[kEach * kMost];
  MPI_Datatype row, rows, absolute;
  MPI_Type_contiguous(3, MPI_DOUBLE, &row);
  MPI_Type_contiguous(10, row, &rows);
  MPI_Type_commit(&rows);
  for (int i = 0; i < kEach; ++i) own[i] = value(rank, i);
  memset(all, 0, sizeof all);
  MPI_Allgather(own, kEach / 30, rows, all, kEach, MPI_DOUBLE, comm);
  for (int i = 0; i < kEach * size; ++i) CHECK(all[i] == value(i / kEach, i % kEach));

  MPI_Aint address;
  const int each = kEach;
  MPI_Get_address(own, &address);
  MPI_Type_create_hindexed(1, &each, &address, MPI_DOUBLE, &absolute);
  MPI_Type_commit(&absolute);
  memset(all, 0, sizeof all);
  MPI_Allgather(MPI_BOTTOM, 1, absolute, all, kEach, MPI_DOUBLE, comm);
  for (int i = 0; i < kEach * size; ++i) CHECK(all[i] == value(i / kEach, i % kEach));
  for (int i = 0; i < kEach; ++i) own[i] = rank == 0 ? 5 + i : 0;
  MPI_Bcast(MPI_BOTTOM, 1, absolute, 0, comm);
  for (int i = 0; i < kEach; ++i) CHECK(own[i] == 5 + i);
  MPI_Type_free(&absolute);
  MPI_Type_free(&rows);
  MPI_Type_free(&row);
}

/* A callback that makes a collective on the communicator that is freed, whose handle comes again for one with other
   ranks. */
static int barrier_at_the_end(MPI_Comm comm, int keyval, void* attribute, void* state) {
  (void)keyval, (void)attribute, (void)state;
  return MPI_Barrier(comm);
}

static void ended_communicators(void) {
  int keyval, world_rank, world_size;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, barrier_at_the_end, &keyval, NULL);
  for (int i = 0; i < 6; ++i) {
    MPI_Comm comm;
    int all[64];
    double one = 1, sum = 0;
    MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 == 0 ? world_rank : -world_rank, &comm);
    MPI_Comm_set_attr(comm, keyval, NULL);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(sum == world_size);
    MPI_Allgather(&world_rank, 1, MPI_INT, all, 1, MPI_INT, comm);
    for (int m = 0; m < world_size; ++m) CHECK(all[m] == (i % 2 == 0 ? m : world_size - 1 - m));
    MPI_Comm_free(&comm);
  }
  MPI_Comm_free_keyval(&keyval);
}

/* MPI's own messages go on while a member waits in a collective: the sender of a large one is in the barrier
   before its receiver asks for it. A message to itself that nobody has asked for is under way meanwhile. */
static void messages_meanwhile(MPI_Comm comm) {
  const int count = 4 << 20;
  char* const data = malloc(count);
  const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
  memset(data, rank + 1, count);
  int to_self = rank, from_self = -1;
  MPI_Request own_request;
  MPI_Isend(&to_self, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &own_request);
  if (rank % 2 == 0 && next != rank && (size % 2 == 0 || rank != size - 1)) {
    MPI_Request request;
    MPI_Isend(data, count, MPI_CHAR, next, 3, comm, &request);
    MPI_Barrier(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (rank % 2 == 1) {
      MPI_Recv(data, count, MPI_CHAR, previous, 3, comm, MPI_STATUS_IGNORE);
      CHECK(data[0] == rank && data[count - 1] == rank);
    }
    MPI_Barrier(comm);
  }
  free(data);
  MPI_Recv(&from_self, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Wait(&own_request, MPI_STATUS_IGNORE);
  CHECK(from_self == rank);

  /* A non-blocking collective of the MPI's around some of ours. */
  int own = rank + 1, sum = 0;
  MPI_Request request;
  MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  MPI_Barrier(comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == size * (size + 1) / 2);
}

/* Collectives of Cohort's and of the MPI's in turns. Each rank is late at times, and those that only send go ahead. */
static void both_in_turns(MPI_Comm comm) {
  int counts[64], offsets[64], all[64];
  for (int m = 0; m < size; ++m) counts[m] = 1, offsets[m] = m;
  for (int i = 0; i < 4 * size; ++i) {
    if (i % size == rank) usleep(3000);
    const int root = (i + 1) % size;
    int own = rank + i, sum = 0, back = 0;
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == size * (size - 1) / 2 + i * size);
    MPI_Scan(&own, &sum, 1, MPI_INT, MPI_MAX, comm);
    CHECK(sum == own);
    MPI_Gatherv(&own, 1, MPI_INT, all, counts, offsets, MPI_INT, root, comm);
    MPI_Bcast(&sum, 1, MPI_INT, root, comm);
    CHECK(sum == root + i);
    MPI_Scatterv(all, counts, offsets, MPI_INT, &back, 1, MPI_INT, root, comm);
    CHECK(back == own);
    MPI_Exscan(&own, &sum, 1, MPI_INT, MPI_MAX, comm);
    CHECK(rank == 0 || sum == own - 1);
    MPI_Barrier(comm);
  }
}

/* Rows of calls in which ranks that only send need not wait, with nothing between them that they all wait for. */
static void rows_of_small_calls(MPI_Comm comm, int calls, int count) {
  double in[128], out[128];
  int* const many = malloc(sizeof(int) * count * size);
  int* const one = malloc(sizeof(int) * count);
  for (int n = 0; n < calls; ++n) {
    const int root = n / 30 % size;
    for (int i = 0; i < count; ++i) in[i] = n + rank + i;
    MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, root, comm);
    for (int i = 0; i < count && rank == root; ++i) CHECK(out[i] == size * (n + i) + size * (size - 1) / 2);
    for (int i = 0; i < count; ++i) in[i] = rank == root ? n + i : -1;
    MPI_Bcast(in, count, MPI_DOUBLE, root, comm);
    for (int i = 0; i < count; ++i) CHECK(in[i] == n + i);
    for (int i = 0; i < count; ++i) one[i] = value(rank, n + i);
    MPI_Gather(one, count, MPI_INT, many, count, MPI_INT, root, comm);
    for (int i = 0; i < count * size && rank == root; ++i) CHECK(many[i] == value(i / count, n + i % count));
    for (int i = 0; i < count * size; ++i) many[i] = rank == root ? n + i : -1;
    MPI_Scatter(many, count, MPI_INT, one, count, MPI_INT, root, comm);
    for (int i = 0; i < count; ++i) CHECK(one[i] == n + rank * count + i);
  }
  free(many);
  free(one);
}

static long resident_kib(void) {
  char line[256];
  long kib = 0;
  FILE* const status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "VmRSS:", 6) == 0) kib = atol(line + 6);
  if (status != NULL) fclose(status);
  return kib;
}

/* So many calls take no more memory than few. */
static void constant_memory(MPI_Comm comm, int calls) {
  rows_of_small_calls(comm, 1000, 4);
  const long before = resident_kib();
  rows_of_small_calls(comm, calls / 4, 4);
  CHECK(resident_kib() - before < 512);
}

/* Rows of a number that Fortran has by its digits, which is predefined: it must not be freed. */
static void rows_of_fortran(MPI_Comm comm) {
  MPI_Datatype number, row;
  double numbers[3];
  MPI_Type_create_f90_real(15, MPI_UNDEFINED, &number);
  MPI_Type_contiguous(3, number, &row);
  MPI_Type_commit(&row);
  for (int i = 0; i < 3; ++i) numbers[i] = value(rank, i);
  MPI_Bcast(numbers, 1, row, size - 1, comm);
  for (int i = 0; i < 3; ++i) CHECK(numbers[i] == value(size - 1, i));
  MPI_Bcast(numbers, 2, number, 0, comm);
  for (int i = 0; i < 3; ++i) CHECK(numbers[i] == value(size - 1, i));
  MPI_Type_free(&row);
}

#if MPI_VERSION >= 4
/* A row of ints that is made with a large count. */
static void large_row(MPI_Comm comm) {
  MPI_Datatype row;
  int numbers[5];
  MPI_Type_contiguous_c(5, MPI_INT, &row);
  MPI_Type_commit(&row);
  for (int i = 0; i < 5; ++i) numbers[i] = value(rank, i);
  MPI_Bcast(numbers, 1, row, size - 1, comm);
  for (int i = 0; i < 5; ++i) CHECK(numbers[i] == value(size - 1, i));
  MPI_Type_free(&row);
}
#endif

static void all_of(MPI_Comm comm) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int counts[] = {0, 1, 3, 16, 100, 1000, 5000, 40000, 300000};
  for (int c = 0; c < (int)(sizeof counts / sizeof *counts); ++c) {
    const int count = counts[c];
    reductions_of_int(comm, count);
    reductions_of_double(comm, count);
    movement(comm, count);
    if (count > 5000) continue;
    reductions_of_signed_char(comm, count);
    reductions_of_unsigned_char(comm, count);
    reductions_of_short(comm, count);
    reductions_of_unsigned_short(comm, count);
    reductions_of_unsigned(comm, count);
    reductions_of_long(comm, count);
    reductions_of_unsigned_long(comm, count);
    reductions_of_long_long(comm, count);
    reductions_of_int8(comm, count);
    reductions_of_uint64(comm, count);
    reductions_of_float(comm, count);
    reductions_of_long_double(comm, count);
    complex_sums(comm, count);
  }
  uneven_blocks(comm);
  uneven_blocks_of_communicators(comm);
  if (size > 1) uneven(comm); /* MPICH 4.0.2 takes no notice of the offset of a single rank */
  derived_datatypes(comm);
  rows_and_addresses(comm);
  for (int count = 1; count <= 128; count *= 4) rows_of_small_calls(comm, 100, count);
  messages_meanwhile(comm);
  both_in_turns(comm);
  rows_of_fortran(comm);
#if MPI_VERSION >= 4
  large_row(comm);
#endif
  MPI_Barrier(comm);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm;
  all_of(MPI_COMM_WORLD);
  const int world_rank = rank;

  if (size == 2) constant_memory(MPI_COMM_WORLD, argc > 1 ? atoi(argv[1]) : 100000);

  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  all_of(comm);
  MPI_Comm_free(&comm);
  MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &comm);
  all_of(comm);
  MPI_Comm_free(&comm);
  all_of(MPI_COMM_SELF);

  ended_communicators();

  /* Handles that come again. */
  for (int i = 0; i < 50; ++i) {
    MPI_Comm_split(MPI_COMM_WORLD, i % 2 == 0 ? 0 : world_rank % 2, world_rank, &comm);
    int own = 1, members = 0, sum = 0;
    MPI_Comm_size(comm, &members);
    MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_rank(comm, &rank);
    CHECK(sum == members);
    MPI_Comm_free(&comm);
  }

  int all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (world_rank == 0) puts(all_wrong == 0 ? "all results are right" : "some results are wrong");
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
