// A program of MPI that knows nothing of Cohort, and whose large buffers come again, end and change their
// size between collectives. Run with the library that gives it its memory, and without.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <mpi.h>

#define LARGE ((size_t)256 << 10)

static int rank, ranks;

static void require(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "memory.c:%d: rank %d: not so: %s\n", line, rank, what);
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define REQUIRE(condition) require(condition, #condition, __LINE__)

static void fill(void* data, size_t bytes, unsigned seed) {
  uint32_t* const words = data;
  for (size_t i = 0; i < bytes / 4; ++i) words[i] = (uint32_t)i * 2654435761u + seed;
}

static int is_filled(const void* data, size_t bytes, unsigned seed) {
  const uint32_t* const words = data;
  for (size_t i = 0; i < bytes / 4; ++i)
    if (words[i] != (uint32_t)i * 2654435761u + seed) return 0;
  return 1;
}

// malloc and its kin, on both sides of the size from which blocks are large.
static void allocate_and_free(unsigned seed, int times) {
  static const size_t kSizes[] = {64, LARGE - 8, LARGE, LARGE + 8, 3 * LARGE, 20 * LARGE, 5000, 260 * LARGE};
  void* blocks[8] = {0};
  size_t sizes[8] = {0};
  unsigned seeds[8] = {0};
  for (int time = 0; time < times; ++time) {
    seed = seed * 1103515245u + 12345u;
    const int which = (int)(seed >> 8) % 8;
    const size_t bytes = kSizes[(seed >> 12) % 8] / (time % 10 == 0 ? 1 : 2);
    if (blocks[which] != NULL) {
      REQUIRE(is_filled(blocks[which], sizes[which], seeds[which]));
      REQUIRE(malloc_usable_size(blocks[which]) >= sizes[which]);
    }
    switch ((seed >> 16) % 6) {
      case 0:
        blocks[which] = realloc(blocks[which], bytes);
        REQUIRE(blocks[which] != NULL);
        REQUIRE(is_filled(blocks[which], sizes[which] < bytes ? sizes[which] : bytes, seeds[which]));
        break;
      case 1: {
        free(blocks[which]);
        blocks[which] = calloc(bytes / 8 + 1, 8);
        const char* const zeros = blocks[which];
        REQUIRE(zeros != NULL && zeros[0] == 0 && memcmp(zeros, zeros + 1, bytes - 1) == 0);
        break;
      }
      case 2: {
        const size_t alignment = (size_t)64 << (seed >> 20) % 17;
        free(blocks[which]);
        REQUIRE(posix_memalign(&blocks[which], alignment, bytes) == 0);
        REQUIRE((uintptr_t)blocks[which] % alignment == 0);
        break;
      }
      case 3:
        free(blocks[which]);
        blocks[which] = aligned_alloc(64, bytes);
        REQUIRE((uintptr_t)blocks[which] % 64 == 0);
        break;
      default:
        errno = EAGAIN;
        free(blocks[which]);
        REQUIRE(errno == EAGAIN);
        blocks[which] = malloc(bytes);
    }
    REQUIRE(blocks[which] != NULL);
    sizes[which] = bytes;
    seeds[which] = seed;
    fill(blocks[which], bytes, seed);
  }
  for (int which = 0; which < 8; ++which) free(blocks[which]);
}

// Handlers of fork() that were there before those of most libraries, so that they lock after these.
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;
static void allocate_in_fork(void) {
  void* const block = realloc(malloc(LARGE), 2 * LARGE);
  if (block == NULL) abort();
  free(block);
}
static void lock_for_fork(void) {
  pthread_mutex_lock(&fork_lock);
  allocate_in_fork();
}
static void unlock_after_fork(void) {
  allocate_in_fork();
  pthread_mutex_unlock(&fork_lock);
}
static void handle_forks(void) { pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork); }
__attribute__((section(".preinit_array"), used)) static void (*const before_all)(void) = handle_forks;

static volatile int allocates;
static void* allocate_under_lock(void* unused) {
  while (allocates) {
    pthread_mutex_lock(&fork_lock);
    for (int i = 0; i < 50; ++i) allocate_in_fork();
    pthread_mutex_unlock(&fork_lock);
  }
  return unused;
}

static void fork_beside_allocations(void) {
  pthread_t thread;
  allocates = 1;
  pthread_create(&thread, NULL, allocate_under_lock, NULL);
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      allocate_in_fork();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  }
  allocates = 0;
  pthread_join(thread, NULL);
}

// The kernel moves no pages with different advice in one call. NumPy advises on the inner part of its arrays.
static void grow_what_was_advised_on(void) {
  char* block = aligned_alloc(8 * LARGE, 32 * LARGE);
  fill(block, 32 * LARGE, 5);
  (void)madvise(block + 8 * LARGE, 8 * LARGE, MADV_NOHUGEPAGE);
  block = realloc(block, 80 * LARGE);
  REQUIRE(block != NULL && is_filled(block, 32 * LARGE, 5));
  free(block);
}

static void* allocate_in_thread(void* seed) {
  allocate_and_free((unsigned)(uintptr_t)seed, 40);
  return NULL;
}

static void refuse_what_cannot_be(void) {
  volatile size_t most = SIZE_MAX;
  errno = 0;
  REQUIRE(malloc(most) == NULL && errno == ENOMEM);
  REQUIRE(calloc(most / 4, 8) == NULL);
  REQUIRE(malloc(most / 4) == NULL);
  void* block = malloc(LARGE);
  fill(block, LARGE, 7);
  REQUIRE(realloc(block, most / 4) == NULL);
  REQUIRE(is_filled(block, LARGE, 7));
  REQUIRE(posix_memalign(&block, 24, LARGE) == EINVAL);
  free(block);
}

// The sum over all ranks of what each puts into `data`.
static void sum_in_place(double* data, int count, int round) {
  for (int i = 0; i < count; ++i) data[i] = rank + i % 1000 + round;
  REQUIRE(MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
  for (int i = 0; i < count; ++i)
    REQUIRE(data[i] == ranks * (ranks - 1) / 2 + ranks * (double)(i % 1000 + round));
}

static void use_blocks_that_end(void) {
  enum { kCount = 100000 };
  for (int round = 0; round < 40; ++round) {
    const int count = kCount + round % 4 * 50000;
    double* const data = malloc((size_t)count * sizeof *data);
    for (int call = 0; call < 5; ++call) sum_in_place(data, count, call);
    free(data);
  }
}

static void use_blocks_that_grow(void) {
  double* data = NULL;
  for (int count = 40000; count < 3000000; count *= 2) {
    data = realloc(data, (size_t)count * sizeof *data);
    for (int i = 1000; i < count / 2 && count > 40000; ++i)
      REQUIRE(data[i] == ranks * (ranks - 1) / 2 + ranks * (double)(i % 1000 + 4));
    for (int call = 0; call < 5; ++call) sum_in_place(data, count, call);
  }
  data = realloc(data, 1000);
  REQUIRE(data[3] == ranks * (ranks - 1) / 2 + ranks * 7.0);
  free(data);
}

static void use_several_buffers(void) {
  enum { kCount = 60000 };
  const size_t bytes = kCount * sizeof(int);
  int* const from = aligned_alloc(4096, bytes);
  int* const to = calloc((size_t)ranks * kCount, sizeof *to);
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < kCount; ++i) from[i] = rank * 7 + i + round;
    REQUIRE(MPI_Allgather(from, kCount, MPI_INT, to, kCount, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int other = 0; other < ranks; ++other)
      for (int i = 0; i < kCount; ++i) REQUIRE(to[other * kCount + i] == other * 7 + i + round);
    REQUIRE(MPI_Bcast(to, ranks * kCount, MPI_INT, ranks - 1, MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Request request;
    MPI_Status status;
    REQUIRE(MPI_Irecv(to, kCount, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    REQUIRE(MPI_Send(from, kCount, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    REQUIRE(MPI_Wait(&request, &status) == MPI_SUCCESS);
    for (int i = 0; i < kCount; ++i) REQUIRE(to[i] == (rank + 1) % ranks * 7 + i + round);
  }
  free(from);
  free(to);
}

// A child has what its parent had when it began, and changes nothing of it.
static void fork_between_calls(void) {
  enum { kCount = 100000 };
  double* const data = malloc(kCount * sizeof *data);
  for (int round = 0; round < 3; ++round) {
    for (int call = 0; call < 5; ++call) sum_in_place(data, kCount, call);
    fill(data, kCount * sizeof *data, 11);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      char go = 0;
      close(ends[1]);
      const int is_told = read(ends[0], &go, 1) == 1;
      const int is_as_before = is_filled(data, kCount * sizeof *data, 11);
      fill(data, kCount * sizeof *data, 12);
      free(data);
      _exit(is_told && is_as_before ? 0 : 1);
    }
    close(ends[0]);
    fill(data, kCount * sizeof *data, 13);
    REQUIRE(write(ends[1], "g", 1) == 1);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    close(ends[1]);
    REQUIRE(is_filled(data, kCount * sizeof *data, 13));
  }
  for (int call = 0; call < 5; ++call) sum_in_place(data, kCount, call);
  free(data);
}

// What other threads write meanwhile is not lost: neither while one forks, nor behind the buffer of a call.
static volatile long* counter;
static volatile int counts;
static void* count_in_thread(void* unused) {
  for (long count = 0; counts;) {
    REQUIRE(*counter == count);
    *counter = ++count;
  }
  return unused;
}

static void write_in_threads(void) {
  enum { kCount = 300000, kRounds = 4 };
  double* blocks[kRounds];
  for (int round = 0; round < kRounds; ++round) {
    double* const data = blocks[round] = malloc((kCount + 1) * sizeof *data);
    for (int forks = 0; forks < 2; ++forks) {
      const int count = kCount + forks;
      if (forks)
        for (int call = 0; call < 5; ++call) sum_in_place(data, count, call);
      counter = (volatile long*)(data + kCount);
      *counter = 0;
      counts = 1;
      pthread_t thread;
      pthread_create(&thread, NULL, count_in_thread, NULL);
      for (int call = 0; call < 4; ++call) {
        if (!forks) {
          sum_in_place(data, count, call);
          continue;
        }
        const pid_t child = fork();
        if (child == 0) {
          alarm(20);
          memset(data, 0, count * sizeof *data);
          free(realloc(data, 4 * count * sizeof *data));
          _exit(0);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
      }
      counts = 0;
      pthread_join(thread, NULL);
    }
  }
  for (int round = 0; round < kRounds; ++round) free(blocks[round]);
}

// Pages that the program may not read at the moment are not read for it, neither for a child nor at the end.
static void protect_pages(void) {
  enum { kCount = 9000000 };  // more than what is kept of freed memory
  double* const data = aligned_alloc(65536, kCount * sizeof *data);
  for (int call = 0; call < 3; ++call) sum_in_place(data, kCount, call);
  REQUIRE(mprotect(data, 65536, PROT_NONE) == 0);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  free(data);
}

// Who puts into a window does so at any time, also while the memory behind it comes in collectives.
static void put_into_windows(void) {
  enum { kCount = 100000 };
  double* const data = malloc(kCount * sizeof *data);
  double* const moved = malloc(kCount * sizeof *data);
  for (int call = 0; call < 5; ++call) sum_in_place(moved, kCount, call);
  MPI_Win window;
  MPI_Win_create(data, kCount * sizeof *data, sizeof *data, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int call = 0; call < 5; ++call) {
    sum_in_place(data, kCount, call);
    const double value = 1000.0 + call + rank;
    MPI_Win_fence(0, window);
    MPI_Put(&value, 1, MPI_DOUBLE, (rank + 1) % ranks, kCount - 1, 1, MPI_DOUBLE, window);
    MPI_Win_fence(0, window);
    REQUIRE(data[kCount - 1] == 1000.0 + call + (rank + ranks - 1) % ranks);
  }
  fill(moved, kCount * sizeof *moved, 17);
  const pid_t child = fork();
  if (child == 0) {
    memset(moved, 0, kCount * sizeof *moved);
    _exit(0);
  }
  REQUIRE(waitpid(child, NULL, 0) == child && is_filled(moved, kCount * sizeof *moved, 17));
  free(moved);
  MPI_Win_free(&window);
  free(data);
}

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  allocate_and_free((unsigned)rank, 150);
  refuse_what_cannot_be();
  grow_what_was_advised_on();
  fork_beside_allocations();
  pthread_t threads[3];
  for (uintptr_t i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, allocate_in_thread, (void*)(i + 10));
  use_blocks_that_end();
  use_blocks_that_grow();
  use_several_buffers();
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  fork_between_calls();
  write_in_threads();
  protect_pages();
  use_blocks_that_end();
  put_into_windows();
  if (rank == 0) puts("all is as it should be");
  MPI_Finalize();
  return 0;
}
