/* Random collectives, each made twice: by its MPI name, which libcohort-mpi.so may carry out, and by its PMPI name, which is
   the MPI's. Their results must be the same, bit for bit, and so must what lies around them.

     random_calls SEED CALLS [THREADS]

   All ranks draw the same calls from SEED: the function, its communicator, datatype, operator, counts and root, in place or
   not, and where the buffers lie: fresh and exact, before a page that must not be touched (what is only read, in pages that
   must not be written), or at an address that comes again. THREADS make calls beside each other, on communicators of their
   own. Numbers are small integers, so that the order of a sum does not matter. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kMostRanks = 64, kArena = 24 << 20, kMostElements = 1 << 17 };

/* ---- what all ranks draw alike */

typedef struct {
  uint64_t state;
} Random;

/* splitmix64 */
static uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}
static uint64_t draw(Random* random, uint64_t below) {
  random->state += 0x9e3779b97f4a7c15u;
  return mix(random->state) % below;
}

/* ---- datatypes and operators */

typedef enum { kInt8, kUInt16, kInt, kLong, kFloat, kDouble, kComplex, kLongDouble, kTriple, kGaps, kTypes } Type;

static MPI_Datatype types[kTypes];
static const int extents[kTypes] = {1, 2, 4, 8, 4, 8, 16, 16, 12, 16};
static const int alignments[kTypes] = {1, 2, 4, 8, 4, 8, 8, 16, 4, 4};

static MPI_Op operators[8];
enum { kSum, kProd, kMin, kMax, kBand, kBor, kOwnSum, kRight };

static void own_sum(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}
/* Associative, not commutative: the operand of the highest rank. */
static void right(void* in, void* inout, int* count, MPI_Datatype* type) { (void)in, (void)inout, (void)count, (void)type; }

static void make_types(void) {
  const MPI_Datatype predefined[] = {MPI_SIGNED_CHAR, MPI_UNSIGNED_SHORT,   MPI_INT,        MPI_LONG, MPI_FLOAT,
                                     MPI_DOUBLE,      MPI_C_DOUBLE_COMPLEX, MPI_LONG_DOUBLE};
  memcpy(types, predefined, sizeof predefined);
  MPI_Type_contiguous(3, MPI_INT, &types[kTriple]);
  /* Two of four ints. */
  MPI_Datatype two;
  MPI_Type_vector(2, 1, 2, MPI_INT, &two);
  MPI_Type_create_resized(two, 0, 4 * sizeof(int), &types[kGaps]);
  MPI_Type_free(&two);
  MPI_Type_commit(&types[kTriple]);
  MPI_Type_commit(&types[kGaps]);
  const MPI_Op given[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR};
  memcpy(operators, given, sizeof given);
  MPI_Op_create(own_sum, 1, &operators[kOwnSum]);
  MPI_Op_create(right, 0, &operators[kRight]);
}

/* The numbers are 1 or 2 for products, of which many are still a small number, and below 5 otherwise. */
static void fill(void* data, Type type, size_t elements, uint64_t seed, int is_product) {
  const size_t numbers = elements * (size_t)(type == kComplex || type == kLongDouble ? 2 : type == kTriple ? 3 : type == kGaps ? 4 : 1);
  for (size_t i = 0; i < numbers; ++i) {
    const unsigned hash = (unsigned)((seed + i) * 0x9e3779b1u) >> 8;
    const int value = is_product ? 1 + (hash % 8 == 0) : (int)(hash % 5);
    switch (type) {
      case kInt8: ((int8_t*)data)[i] = (int8_t)value; break;
      case kUInt16: ((uint16_t*)data)[i] = (uint16_t)value; break;
      case kLong: ((long*)data)[i] = value; break;
      case kFloat: ((float*)data)[i] = (float)value; break;
      case kDouble:
      case kComplex: ((double*)data)[i] = value; break;
      case kLongDouble: ((uint64_t*)data)[i] = hash; break; /* only moved */
      default: ((int*)data)[i] = value; break;
    }
  }
}

/* ---- buffers */

typedef enum { kExact, kGuarded, kReused, kPlaces } Place;

typedef struct {
  unsigned char* data;
  size_t bytes;
  Place place;
  unsigned char* pages;
  size_t page_bytes;
} Buffer;

static Buffer make_buffer(size_t bytes, Place place, unsigned char* arena, size_t alignment) {
  Buffer made = {NULL, bytes, place, NULL, 0};
  if (place == kExact) made.data = malloc(bytes == 0 ? 1 : bytes);
  if (place == kReused) made.data = arena;
  if (place == kGuarded) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    made.page_bytes = (bytes + page - 1) / page * page;
    made.pages = mmap(NULL, made.page_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made.pages == MAP_FAILED || mprotect(made.pages + made.page_bytes, page, PROT_NONE) != 0) abort();
    made.data = made.pages + (made.page_bytes - bytes) / alignment * alignment;
  }
  return made;
}
static void make_read_only(const Buffer* buffer) {
  if (buffer->place == kGuarded && buffer->page_bytes > 0) mprotect(buffer->pages, buffer->page_bytes, PROT_READ);
}
static void free_buffer(Buffer* buffer) {
  if (buffer->place == kExact) free(buffer->data);
  if (buffer->place == kGuarded) munmap(buffer->pages, buffer->page_bytes + (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- calls */

typedef enum {
  kBarrier, kBcast, kReduce, kAllreduce, kScan, kExscan, kReduceScatterBlock, kReduceScatter,
  kAllgather, kAllgatherv, kGather, kGatherv, kScatter, kScatterv, kAlltoall, kAlltoallv, kIallreduce, kIbcast, kFunctions
} Function;
static const char* const names[kFunctions] = {
    "Barrier", "Bcast", "Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter_block", "Reduce_scatter",
    "Allgather", "Allgatherv", "Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv", "Iallreduce", "Ibcast"};

typedef struct {
  Function function;
  MPI_Comm comm;
  int rank, size, root, in_place, count;
  MPI_Op op;
  MPI_Datatype type;
  int scale; /* numbers of `type` for each element: ranks may see a row of three as three */
  int counts[kMostRanks], offsets[kMostRanks], send_counts[kMostRanks], send_offsets[kMostRanks];
  size_t in_elements, out_elements;
  int has_in, has_out, out_is_input, out_is_undefined;
} Call;

#define INVOKE(Prefix)                                                                                                      \
  static int Prefix##_invoke(const Call* c, const void* in, void* out) {                                                    \
    const void* const from = c->in_place ? MPI_IN_PLACE : in;                                                               \
    const int n = c->count * c->scale, is_root = c->rank == c->root;                                                        \
    const MPI_Datatype t = c->type;                                                                                         \
    MPI_Request request;                                                                                                    \
    int status;                                                                                                             \
    switch (c->function) {                                                                                                  \
      case kBarrier: return Prefix##_Barrier(c->comm);                                                                      \
      case kBcast: return Prefix##_Bcast(out, n, t, c->root, c->comm);                                                      \
      case kReduce: return Prefix##_Reduce(is_root ? from : in, out, n, t, c->op, c->root, c->comm);                        \
      case kAllreduce: return Prefix##_Allreduce(from, out, n, t, c->op, c->comm);                                          \
      case kScan: return Prefix##_Scan(from, out, n, t, c->op, c->comm);                                                    \
      case kExscan: return Prefix##_Exscan(from, out, n, t, c->op, c->comm);                                                \
      case kReduceScatterBlock: return Prefix##_Reduce_scatter_block(from, out, n, t, c->op, c->comm);                      \
      case kReduceScatter: return Prefix##_Reduce_scatter(from, out, c->counts, t, c->op, c->comm);                         \
      case kAllgather: return Prefix##_Allgather(from, n, t, out, n, t, c->comm);                                           \
      case kAllgatherv:                                                                                                     \
        return Prefix##_Allgatherv(from, c->counts[c->rank], t, out, c->counts, c->offsets, t, c->comm);                    \
      case kGather:                                                                                                         \
        if (is_root) return Prefix##_Gather(from, n, t, out, n, t, c->root, c->comm);                                       \
        return Prefix##_Gather(in, n, t, NULL, -1, MPI_DATATYPE_NULL, c->root, c->comm);                                    \
      case kGatherv:                                                                                                        \
        if (is_root)                                                                                                        \
          return Prefix##_Gatherv(from, c->counts[c->rank], t, out, c->counts, c->offsets, t, c->root, c->comm);            \
        return Prefix##_Gatherv(in, c->counts[c->rank], t, NULL, NULL, NULL, MPI_DATATYPE_NULL, c->root, c->comm);          \
      case kScatter:                                                                                                        \
        if (is_root) return Prefix##_Scatter(in, n, t, c->in_place ? MPI_IN_PLACE : out, n, t, c->root, c->comm);           \
        return Prefix##_Scatter(NULL, -1, MPI_DATATYPE_NULL, out, n, t, c->root, c->comm);                                  \
      case kScatterv:                                                                                                       \
        if (is_root)                                                                                                        \
          return Prefix##_Scatterv(in, c->counts, c->offsets, t, c->in_place ? MPI_IN_PLACE : out, c->counts[c->rank], t,   \
                                   c->root, c->comm);                                                                       \
        return Prefix##_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, out, c->counts[c->rank], t, c->root, c->comm);        \
      case kAlltoall: return Prefix##_Alltoall(from, n, t, out, n, t, c->comm);                                             \
      case kAlltoallv:                                                                                                      \
        return Prefix##_Alltoallv(in, c->send_counts, c->send_offsets, t, out, c->counts, c->offsets, t, c->comm);          \
      case kIallreduce:                                                                                                     \
        status = Prefix##_Iallreduce(from, out, n, t, c->op, c->comm, &request);                                            \
        return status == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : status;                                      \
      case kIbcast:                                                                                                         \
        status = Prefix##_Ibcast(out, n, t, c->root, c->comm, &request);                                                    \
        return status == MPI_SUCCESS ? MPI_Wait(&request, MPI_STATUS_IGNORE) : status;                                      \
      default: return MPI_ERR_OTHER;                                                                                        \
    }                                                                                                                       \
  }
INVOKE(MPI)
INVOKE(PMPI)

/* Blocks with gaps between them, in the order of the ranks or the other way round; returns where they end. */
static int lay_out(const int* counts, int* offsets, int size, int gap, int backwards) {
  int at = 0;
  for (int k = 0; k < size; ++k) {
    const int m = backwards ? size - 1 - k : k;
    offsets[m] = at;
    at += counts[m] + gap;
  }
  return at;
}

static int is_reduction(Function function) {
  return (function >= kReduce && function <= kReduceScatter) || function == kIallreduce;
}

/* The sizes of a call that has function, communicator and type; `most` elements in a rank's largest buffer. */
static void draw_sizes(Call* c, Random* random, int most) {
  const uint64_t seed = draw(random, UINT64_MAX);
  const int gap = (int)draw(random, 3), backwards = (int)draw(random, 2), is_even = draw(random, 3) == 0;
  const int bits = (int)draw(random, 18);
  const uint64_t drawn = draw(random, (uint64_t)1 << bits) + (bits > 4);
  const int each = (int)drawn * c->size > most ? most / c->size : (int)drawn;
  c->count = each;
  for (int m = 0; m < c->size; ++m) {
    c->counts[m] = (is_even ? each : (int)(mix(seed + (uint64_t)m) % (uint64_t)(each + 1))) * c->scale;
  }
  const int all = each * c->size;
  const int rank = c->rank, is_root = rank == c->root;
  c->has_in = c->has_out = 1;
  switch (c->function) {
    case kBarrier: c->has_in = c->has_out = 0; break;
    case kBcast:
    case kIbcast:
      c->has_in = 0, c->out_is_input = 1, c->out_elements = (size_t)each;
      break;
    case kReduce:
      c->in_elements = c->out_elements = (size_t)each;
      c->has_out = is_root, c->has_in = !(is_root && c->in_place), c->out_is_input = is_root && c->in_place;
      break;
    case kReduceScatterBlock: c->in_elements = (size_t)all, c->out_elements = (size_t)(c->in_place ? all : each); break;
    case kReduceScatter: {
      int total = 0;
      for (int m = 0; m < c->size; ++m) total += c->counts[m];
      c->in_elements = (size_t)total, c->out_elements = (size_t)(c->in_place ? total : c->counts[rank]);
      break;
    }
    case kAllgather: c->in_elements = (size_t)each, c->out_elements = (size_t)all; break;
    case kAllgatherv:
      c->in_elements = (size_t)c->counts[rank], c->out_elements = (size_t)lay_out(c->counts, c->offsets, c->size, gap, backwards);
      break;
    case kGather:
      c->in_elements = (size_t)each, c->out_elements = (size_t)all, c->has_out = is_root;
      break;
    case kGatherv:
      c->in_elements = (size_t)c->counts[rank], c->has_out = is_root;
      c->out_elements = (size_t)lay_out(c->counts, c->offsets, c->size, gap, backwards);
      break;
    case kScatter:
      c->in_elements = (size_t)all, c->out_elements = (size_t)each, c->has_in = is_root, c->has_out = !(is_root && c->in_place);
      break;
    case kScatterv:
      c->in_elements = (size_t)lay_out(c->counts, c->offsets, c->size, gap, backwards), c->has_in = is_root;
      c->out_elements = (size_t)c->counts[rank], c->has_out = !(is_root && c->in_place);
      break;
    case kAlltoall: c->in_elements = c->out_elements = (size_t)all; break;
    case kAlltoallv:
      for (int m = 0; m < c->size; ++m) {
        const uint64_t below = (uint64_t)each + 1;
        c->send_counts[m] = (int)(mix(seed + (uint64_t)(rank * c->size + m)) % below);
        c->counts[m] = (int)(mix(seed + (uint64_t)(m * c->size + rank)) % below);
      }
      c->in_elements = (size_t)lay_out(c->send_counts, c->send_offsets, c->size, gap, backwards);
      c->out_elements = (size_t)lay_out(c->counts, c->offsets, c->size, gap, 0);
      break;
    default: c->in_elements = c->out_elements = (size_t)each; break;
  }
  const int is_rooted = c->function == kReduce || c->function == kGather || c->function == kGatherv ||
                        c->function == kScatter || c->function == kScatterv;
  if (c->in_place && !is_rooted && c->function != kBcast && c->function != kIbcast && c->function != kBarrier)
    c->has_in = 0, c->out_is_input = 1;
  if (c->in_place && is_root && (c->function == kGather || c->function == kGatherv)) c->has_in = 0, c->out_is_input = 1;
  c->out_is_undefined = c->function == kExscan && rank == 0;
}

/* ---- one thread's calls */

enum { kComms = 5 };

typedef struct {
  uint64_t seed;
  long calls;
  int may_make_communicators;
  MPI_Comm parent, comms[kComms];
  unsigned char* arena;
  long wrong;
} Worker;

static void make_communicator(Worker* worker, int which) {
  int rank, size;
  MPI_Comm_rank(worker->parent, &rank);
  MPI_Comm_size(worker->parent, &size);
  MPI_Comm* const made = &worker->comms[which];
  switch (which) {
    case 1: MPI_Comm_split(worker->parent, 0, -rank, made); break;
    case 2: MPI_Comm_split(worker->parent, rank % 2, rank, made); break;
    case 3: MPI_Comm_split(worker->parent, rank == size - 1, rank, made); break;
    default: MPI_Comm_dup(worker->parent, made); break;
  }
}

static Call draw_call(Worker* worker, Random* random, Type* type, int* op) {
  Call c;
  memset(&c, 0, sizeof c);
  c.function = (Function)draw(random, kFunctions);
  const int which = (int)draw(random, kComms);
  *type = (Type)draw(random, kTypes);
  *op = (int)draw(random, 8);
  const uint64_t root = draw(random, kMostRanks);
  c.in_place = draw(random, 3) == 0;
  if (is_reduction(c.function)) {
    if (*type > kComplex) *type = kDouble;
    if (*type == kComplex) *op = kSum;
    if (*op >= kOwnSum) *type = kInt;
    if ((*op == kBand || *op == kBor) && *type > kLong) *op = kMax;
  }
  /* Open MPI 4.1 has no MPI_Alltoallv in place that is right. */
  if (c.function == kAlltoallv) c.in_place = 0;
  c.comm = worker->comms[which];
  MPI_Comm_rank(c.comm, &c.rank);
  MPI_Comm_size(c.comm, &c.size);
  /* MPICH 4.0.2 copies blocks of different sizes onto themselves. */
  if (c.function == kReduceScatter && c.in_place) c.function = kReduceScatterBlock;
  /* MPICH 4.0.2 takes no notice of the offset of a single rank. */
  if (c.size == 1 && c.function == kAllgatherv) c.function = kAllgather;
  c.root = (int)(root % (uint64_t)c.size);
  /* MPICH 4.0.2 reads from MPI_IN_PLACE in long reductions to another rank than the first. */
  if (c.function == kReduce && c.root != 0) c.in_place = 0;
  c.op = operators[*op];
  c.type = types[*type];
  c.scale = 1;
  draw_sizes(&c, random, kMostElements);
  /* Rows of three, or three numbers each: ranks may say it either way. */
  const int is_of_one_count = c.function == kBcast || c.function == kAllgather || c.function == kGather ||
                              c.function == kScatter || c.function == kAlltoall;
  if (*type == kTriple && is_of_one_count && c.rank % 2 == 1) c.type = MPI_INT, c.scale = 3;
  return c;
}

/* One call both ways. Returns whether the results are the same. */
static int compare(Worker* worker, const Call* c, Type type, int op, Place in_place, Place out_place, uint64_t seed) {
  const size_t alignment = (size_t)alignments[type], extent = (size_t)extents[type];
  unsigned char* const areas[3] = {worker->arena, worker->arena + kArena / 3, worker->arena + kArena / 3 * 2};
  Buffer in = make_buffer(c->in_elements * extent, in_place, areas[0], alignment);
  Buffer outs[2];
  const int is_product = op == kProd && is_reduction(c->function);
  if (c->has_in) fill(in.data, type, c->in_elements, seed * 31 + (uint64_t)c->rank, is_product);
  make_read_only(&in);
  int status[2];
  for (int way = 0; way < 2; ++way) {
    outs[way] = make_buffer(c->out_elements * extent, out_place, areas[1 + way], alignment);
    memset(outs[way].data, 0x55, outs[way].bytes);
    if (c->has_out && c->out_is_input)
      fill(outs[way].data, type, c->out_elements, seed * 31 + (uint64_t)c->rank, is_product);
    void* const out = c->has_out ? outs[way].data : NULL;
    const void* const from = c->has_in ? in.data : NULL;
    status[way] = way == 0 ? MPI_invoke(c, from, out) : PMPI_invoke(c, from, out);
  }
  const size_t told = (c->function == kReduceScatterBlock ? (size_t)c->count
                       : c->function == kReduceScatter    ? (size_t)c->counts[c->rank]
                                                          : c->out_elements) *
                      extent; /* what is behind the result of a reduce-scatter in place is the MPI's */
  const int is_same = status[0] == MPI_SUCCESS && status[1] == MPI_SUCCESS &&
                      (!c->has_out || c->out_is_undefined || memcmp(outs[0].data, outs[1].data, told) == 0);
  free_buffer(&in);
  free_buffer(&outs[0]);
  free_buffer(&outs[1]);
  return is_same;
}

static void* make_calls(void* argument) {
  Worker* const worker = argument;
  Random random = {worker->seed};
  int world_rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  for (long call = 0; call < worker->calls; ++call) {
    Type type;
    int op;
    const Call c = draw_call(worker, &random, &type, &op);
    const Place in_place = (Place)draw(&random, kPlaces), out_place = (Place)draw(&random, kPlaces);
    const uint64_t seed = draw(&random, UINT64_MAX);
    if (!compare(worker, &c, type, op, in_place, out_place, seed) && ++worker->wrong < 5) {
      fprintf(stderr, "rank %d, seed %llu, call %ld: MPI_%s, rank %d of %d, root %d, %d elements of type %d, operator %d%s: %s\n",
              world_rank, (unsigned long long)worker->seed, call, names[c.function], c.rank, c.size, c.root, c.count, (int)type,
              op, c.in_place ? ", in place" : "", "not the MPI's result");
    }
    if (draw(&random, 50) == 0 && worker->may_make_communicators) {
      const int which = 1 + (int)draw(&random, kComms - 1);
      MPI_Comm_free(&worker->comms[which]);
      make_communicator(worker, which);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: random_calls SEED CALLS [THREADS]\n");
    return 2;
  }
  const int threads = argc > 3 ? atoi(argv[3]) : 1;
  int provided, rank, size;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > kMostRanks || threads < 1 || (threads > 1 && provided < MPI_THREAD_MULTIPLE)) {
    if (rank == 0) fprintf(stderr, "random_calls: %d ranks with %d threads each are not possible\n", size, threads);
    MPI_Finalize();
    return 2;
  }
  make_types();
  Worker* const workers = calloc((size_t)threads, sizeof(Worker));
  pthread_t* const running = calloc((size_t)threads, sizeof(pthread_t));
  for (int t = 0; t < threads; ++t) {
    Worker* const worker = &workers[t];
    worker->seed = strtoull(argv[1], NULL, 10) + (uint64_t)t;
    worker->calls = atol(argv[2]);
    worker->may_make_communicators = threads == 1;
    worker->arena = malloc(kArena);
    worker->parent = MPI_COMM_WORLD;
    if (t > 0) MPI_Comm_dup(MPI_COMM_WORLD, &worker->parent);
    worker->comms[0] = worker->parent;
    for (int which = 1; which < kComms; ++which) make_communicator(worker, which);
  }
  for (int t = 1; t < threads; ++t) pthread_create(&running[t], NULL, make_calls, &workers[t]);
  make_calls(&workers[0]);
  long wrong = workers[0].wrong, all_wrong = 0;
  for (int t = 1; t < threads; ++t) {
    pthread_join(running[t], NULL);
    wrong += workers[t].wrong;
  }
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) puts(all_wrong == 0 ? "all results are the MPI's" : "some results are not the MPI's");
  for (int t = 0; t < threads; ++t) free(workers[t].arena);
  free(workers);
  free(running);
  MPI_Finalize();
  return all_wrong == 0 ? 0 : 1;
}
