/* A program that knows nothing of Cohort: reductions by operators that Cohort has no kernel for, those of MPI and the
   program's own, of a few elements and of more than libcohort-mpi.so gathers. It ends with 0 only if all results are
   right. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

/* x -> a x + b. Carrying out one after the other is associative, and does not commute. */
typedef struct {
  int a, b;
} Line;
static void after(void* first, void* second, int* count, MPI_Datatype* type) {
  Line* const then = second;
  const Line* const before = first;
  (void)type;
  for (int i = 0; i < *count; ++i) then[i] = (Line){before[i].a * then[i].a, before[i].b * then[i].a + then[i].b};
}

/* Of five ints, 20 bytes: operands lie where larger numbers may all the same. */
static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  CHECK((uintptr_t)in % 8 == 0 && (uintptr_t)inout % 8 == 0);
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void own_sums(MPI_Comm comm) {
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  int in[5], out[5];
  for (int i = 0; i < 5; ++i) in[i] = rank + i;
  MPI_Allreduce(in, out, 5, MPI_INT, op, comm);
  for (int i = 0; i < 5; ++i) CHECK(out[i] == size * (size - 1) / 2 + size * i);
  MPI_Op_free(&op);
}

static Line line_of(int m, int i) { return (Line){1 + (m + i) % 2, m + i}; }

/* Of the ranks up to this one. */
static Line combined(int last, int i) {
  MPI_Datatype type = MPI_2INT;
  Line all = line_of(last, i);
  for (int m = last; m-- > 0;) {
    Line before = line_of(m, i);
    int one = 1;
    after(&before, &all, &one, &type);
  }
  return all;
}

static void own_operator(MPI_Comm comm, int count) {
  MPI_Datatype type = MPI_2INT;
  MPI_Op op;
  MPI_Op_create(after, 0, &op);
  Line* const in = malloc(sizeof(Line) * count);
  Line* const out = malloc(sizeof(Line) * count);
  Line* const expected = malloc(sizeof(Line) * count);
  for (int i = 0; i < count; ++i) {
    in[i] = line_of(rank, i);
    expected[i] = combined(size - 1, i);
  }
  MPI_Allreduce(in, out, count, type, op, comm);
  CHECK(memcmp(out, expected, sizeof(Line) * count) == 0);
  memcpy(out, in, sizeof(Line) * count);
  MPI_Allreduce(MPI_IN_PLACE, out, count, type, op, comm);
  CHECK(memcmp(out, expected, sizeof(Line) * count) == 0);
  for (int root = 0; root < size; ++root) {
    memset(out, 0, sizeof(Line) * count);
    MPI_Reduce(in, rank == root ? out : NULL, count, type, op, root, comm);
    CHECK(rank != root || memcmp(out, expected, sizeof(Line) * count) == 0);
    memcpy(out, in, sizeof(Line) * count);
    MPI_Reduce(rank == root ? MPI_IN_PLACE : out, rank == root ? out : NULL, count, type, op, root, comm);
    CHECK(rank != root || memcmp(out, expected, sizeof(Line) * count) == 0);
  }
  free(expected);
  free(out);
  free(in);
  MPI_Op_free(&op);
}

/* Each rank's result is of its own contribution and those before it; without its own, rank 0 has none. */
static void own_scan(MPI_Comm comm, int count, int in_place) {
  MPI_Datatype type = MPI_2INT;
  MPI_Op op;
  MPI_Op_create(after, 0, &op);
  Line* const in = malloc(sizeof(Line) * count);
  Line* const out = malloc(sizeof(Line) * count);
  Line* const expected = malloc(sizeof(Line) * count);
  for (int with_own = 1; with_own >= 0; --with_own) {
    const int last = with_own ? rank : rank - 1;
    for (int i = 0; i < count; ++i) {
      in[i] = out[i] = line_of(rank, i);
      if (!in_place) out[i] = (Line){-1, -1};
      expected[i] = last < 0 ? out[i] : combined(last, i);
    }
    if (with_own)
      MPI_Scan(in_place ? MPI_IN_PLACE : in, out, count, type, op, comm);
    else
      MPI_Exscan(in_place ? MPI_IN_PLACE : in, out, count, type, op, comm);
    CHECK(memcmp(out, expected, sizeof(Line) * count) == 0);
  }
  free(expected);
  free(out);
  free(in);
  MPI_Op_free(&op);
}

/* Programs count on a rank's sum being that of the rank before it and its own number, to the last bit. */
static void scans_of_doubles(MPI_Comm comm, int count) {
  double in[256], out[256], before[256], sums[256];
  for (int i = 0; i < count; ++i) in[i] = 1.0 / (3 + rank + i);
  const int is_cohorts =
      count * sizeof(double) > 128 && count * sizeof(double) <= 1024 && size <= 8 && getenv("COHORT_MPI_CALLS") == NULL;
  const double* own = in;
  double* result = before;
#ifdef OPEN_MPI /* which takes one buffer for both, and of rank 0, which has no result without its own, any address for it */
  if (is_cohorts && rank == size - 1) own = memcpy(out, in, sizeof(double) * count);
  if (rank == 0) result = NULL;
#endif
  MPI_Scan(own, out, count, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) {
    sums[i] = 0;
    for (int m = 0; m <= rank; ++m) sums[i] += 1.0 / (3 + m + i);
    CHECK(out[i] > sums[i] - 1e-12 && out[i] < sums[i] + 1e-12);
  }
  MPI_Exscan(in, result, count, MPI_DOUBLE, MPI_SUM, comm);
  if (is_cohorts)
    for (int i = 0; i < count; ++i) CHECK(out[i] == sums[i] && (rank == 0 || before[i] + in[i] == out[i]));
}

typedef struct {
  double value;
  int index;
} Place;

static Place place_of(int m, int i) { return (Place){(m + i) % 3, 100 * m + i}; }

static void operators_of_mpi(MPI_Comm comm) {
  const int bits = 1 << rank % 20;
  int all = 0;
  MPI_Allreduce(&bits, &all, 1, MPI_INT, MPI_BOR, comm);
  CHECK(all == (size > 20 ? (1 << 20) - 1 : (1 << size) - 1));
  MPI_Allreduce(&bits, &all, 1, MPI_INT, MPI_BXOR, comm);
  CHECK(size > 20 || all == (1 << size) - 1);
  const int truths[3] = {1, rank == 0, 0};
  int said[3];
  MPI_Allreduce(truths, said, 3, MPI_INT, MPI_LAND, comm);
  CHECK(said[0] == 1 && said[1] == (size == 1) && said[2] == 0);
  MPI_Allreduce(truths, said, 3, MPI_INT, MPI_LOR, comm);
  CHECK(said[0] == 1 && said[1] == 1 && said[2] == 0);
  MPI_Allreduce(truths, said, 3, MPI_INT, MPI_LXOR, comm);
  CHECK(said[0] == size % 2 && said[1] == 1 && said[2] == 0);
  for (int count = 1; count < 4; ++count) {
    /* What is behind a number is not the MPI's, behind the last one neither to read nor to write. */
    const size_t bytes = sizeof(Place) * (count - 1) + offsetof(Place, index) + sizeof(int);
    char* const in = malloc(bytes);
    char* const out = malloc(bytes + 4);
    for (int i = 0; i < count; ++i) {
      const Place own = place_of(rank, i);
      memcpy(in + sizeof(Place) * i, &own.value, sizeof own.value);
      memcpy(in + sizeof(Place) * i + offsetof(Place, index), &own.index, sizeof own.index);
    }
    for (int root = -1; root < size; ++root) {
      memset(out, 7, bytes + 4);
      if (root < 0)
        MPI_Allreduce(in, out, count, MPI_DOUBLE_INT, MPI_MAXLOC, comm);
      else
        MPI_Reduce(in, rank == root ? out : NULL, count, MPI_DOUBLE_INT, MPI_MAXLOC, root, comm);
      CHECK(memcmp(out + bytes, "\7\7\7\7", 4) == 0);
      for (int i = 0; i + 1 < count; ++i) CHECK(memcmp(out + sizeof(Place) * (i + 1) - 4, "\7\7\7\7", 4) == 0);
      if (root >= 0 && rank != root) continue;
      for (int i = 0; i < count; ++i) {
        Place best = place_of(0, i), got;
        for (int m = 1; m < size; ++m)
          if (place_of(m, i).value > best.value) best = place_of(m, i);
        memcpy(&got.value, out + sizeof(Place) * i, sizeof got.value);
        memcpy(&got.index, out + sizeof(Place) * i + offsetof(Place, index), sizeof got.index);
        CHECK(got.value == best.value && got.index == best.index);
      }
    }
    free(out);
    free(in);
  }
}

static void small_pairs(MPI_Comm comm) {
  struct {
    short value, own;
    int index;
  } in[2] = {{(short)-rank, 1, rank}, {(short)rank, 2, rank}}, out[2] = {{0, 3, 0}, {0, 4, 0}};
  MPI_Allreduce(in, out, 2, MPI_SHORT_INT, MPI_MAXLOC, comm);
  CHECK(out[0].value == 0 && out[0].index == 0 && out[0].own == 3);
  CHECK(out[1].value == size - 1 && out[1].index == size - 1 && out[1].own == 4);
}

static void long_doubles(MPI_Comm comm, int count) {
  long double* const in = malloc(sizeof(long double) * count);
  long double* const out = malloc(sizeof(long double) * count);
  for (int i = 0; i < count; ++i) in[i] = rank + i / 4.0L;
  MPI_Allreduce(in, out, count, MPI_LONG_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) CHECK(out[i] == size * (size - 1) / 2 + size * (i / 4.0L));
  MPI_Allreduce(in, out, count, MPI_LONG_DOUBLE, MPI_MAX, comm);
  for (int i = 0; i < count; ++i) CHECK(out[i] == size - 1 + i / 4.0L);
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm reversed;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
  const MPI_Comm comms[] = {MPI_COMM_WORLD, reversed};
  for (int c = 0; c < 2; ++c) {
    const int sizes[] = {1, 7, 64, 65, 128, 129}; /* up to 1 KiB of long doubles and of lines, and more */
    MPI_Comm_rank(comms[c], &rank);
    MPI_Comm_size(comms[c], &size);
    for (int round = 0; round < 3; ++round) {
      operators_of_mpi(comms[c]);
      small_pairs(comms[c]);
      own_sums(comms[c]);
      for (int i = 0; i < 6; ++i) {
        own_operator(comms[c], sizes[i]);
        own_scan(comms[c], sizes[i], round % 2);
        scans_of_doubles(comms[c], sizes[i]);
        long_doubles(comms[c], sizes[i]);
      }
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&reversed);
  MPI_Finalize();
  if (wrong == 0 && rank == size - 1) printf("all results are right\n"); /* rank 0 of the world */
  return wrong != 0;
}
