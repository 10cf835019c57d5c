// libcohort-mpi.so, and libcohort-mpi-large.so for counts above an int: to be put before the MPI library of a
// program that knows nothing of Cohort (LD_PRELOAD). It has functions of the same names, which at first find
// out which MPI the program uses, open the shim for it and from then on pass their calls on to what the shim
// has in their place, or to the MPI library.
//
// Launchers and shells get it, too, so it does nothing before the first call, and needs no C++ library.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "../entry_points.h"
#include "../shim_interface.h"
#include "mpi_library.h"

namespace cohort::preload {
namespace {

/// An argument or a result: an integer or a pointer.
using Word = long;

/// So that a job says a thing once. Launchers say in these variables which process this is.
bool is_first_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* const rank = std::getenv(name)) return std::strcmp(rank, "0") == 0;
  }
  return true;
}

void say(const char* what, const char* detail) {
  if (is_first_process())
    std::fprintf(stderr, "cohort: %s: %s; the program runs as without libcohort-mpi.so\n", what, detail);
}

using FindFunction = decltype(&cohort_shim_function);

/// Null where there is no shim to use.
FindFunction open_shim() {
  const char* const wanted = std::getenv("COHORT_MPI_CALLS");
  if (wanted != nullptr && std::strcmp(wanted, "none") == 0) return nullptr;
  const MpiLibrary library = find_mpi_library();
  if (library.abi == nullptr) {
    say("this MPI is not known", library.file == nullptr ? "no library has its functions" : library.version);
    return nullptr;
  }
  Dl_info own;
  if (::dladdr(reinterpret_cast<void*>(&open_shim), &own) == 0) return nullptr;
  const char* const slash = std::strrchr(own.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash - own.dli_fname) + 1;
  char path[4096];
  const int length =
      std::snprintf(path, sizeof path, "%.*slibcohort-mpi-%s.so", folder, own.dli_fname, library.abi);
  if (length < 0 || static_cast<std::size_t>(length) >= sizeof path) return nullptr;
  void* const shim = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (shim == nullptr) {
    say("the part for this MPI cannot be loaded", ::dlerror());
    return nullptr;
  }
  const auto open = reinterpret_cast<decltype(&cohort_shim_open)>(::dlsym(shim, "cohort_shim_open"));
  const auto find = reinterpret_cast<FindFunction>(::dlsym(shim, "cohort_shim_function"));
  if (open == nullptr || find == nullptr) {
    say("the part for this MPI is of another version", path);
    return nullptr;
  }
  open(&find_next);
  return find;
}

FindFunction shim_function = nullptr;  ///< set once
pthread_once_t shim_is_opened = PTHREAD_ONCE_INIT;

/// What is called for the function `name` from now on.
void* resolve(const char* name) {
  ::pthread_once(&shim_is_opened, [] { shim_function = open_shim(); });
  if (shim_function != nullptr) {
    if (void* const function = shim_function(name)) return function;
  }
  void* const next = find_next(name);
  if (next == nullptr) {
    std::fprintf(stderr, "cohort: the program calls %s, which its MPI library does not have\n", name);
    std::abort();
  }
  return next;
}

}  // namespace

// Of each function the parameters, and these as arguments.
#define COHORT_PARAMETERS_0
#define COHORT_PARAMETERS_1 Word a
#define COHORT_PARAMETERS_2 COHORT_PARAMETERS_1, Word b
#define COHORT_PARAMETERS_3 COHORT_PARAMETERS_2, Word c
#define COHORT_PARAMETERS_4 COHORT_PARAMETERS_3, Word d
#define COHORT_PARAMETERS_5 COHORT_PARAMETERS_4, Word e
#define COHORT_PARAMETERS_6 COHORT_PARAMETERS_5, Word f
#define COHORT_PARAMETERS_7 COHORT_PARAMETERS_6, Word g
#define COHORT_PARAMETERS_8 COHORT_PARAMETERS_7, Word h
#define COHORT_PARAMETERS_9 COHORT_PARAMETERS_8, Word i
#define COHORT_PARAMETERS_10 COHORT_PARAMETERS_9, Word j
#define COHORT_ARGUMENTS_0
#define COHORT_ARGUMENTS_1 a
#define COHORT_ARGUMENTS_2 COHORT_ARGUMENTS_1, b
#define COHORT_ARGUMENTS_3 COHORT_ARGUMENTS_2, c
#define COHORT_ARGUMENTS_4 COHORT_ARGUMENTS_3, d
#define COHORT_ARGUMENTS_5 COHORT_ARGUMENTS_4, e
#define COHORT_ARGUMENTS_6 COHORT_ARGUMENTS_5, f
#define COHORT_ARGUMENTS_7 COHORT_ARGUMENTS_6, g
#define COHORT_ARGUMENTS_8 COHORT_ARGUMENTS_7, h
#define COHORT_ARGUMENTS_9 COHORT_ARGUMENTS_8, i
#define COHORT_ARGUMENTS_10 COHORT_ARGUMENTS_9, j

// A function of the name, which jumps to `target`. At first that looks for what the function stands for;
// threads that make the first call at once find the same.
#define COHORT_ENTRY_POINT(NAME, COUNT)                                                        \
  namespace {                                                                                  \
  struct Entry_##NAME {                                                                        \
    using Function = Word (*)(COHORT_PARAMETERS_##COUNT);                                      \
    static Word first_call(COHORT_PARAMETERS_##COUNT) {                                        \
      const auto function = reinterpret_cast<Function>(resolve(#NAME));                        \
      __atomic_store_n(&target, function, __ATOMIC_RELEASE);                                   \
      return function(COHORT_ARGUMENTS_##COUNT);                                               \
    }                                                                                          \
    static inline Function target = &first_call;                                               \
  };                                                                                           \
  }                                                                                            \
  extern "C" __attribute__((visibility("default"))) Word NAME(COHORT_PARAMETERS_##COUNT) {     \
    return __atomic_load_n(&Entry_##NAME::target, __ATOMIC_ACQUIRE)(COHORT_ARGUMENTS_##COUNT); \
  }
#ifdef COHORT_LARGE_COUNTS
COHORT_LARGE_COUNT_ENTRY_POINTS(COHORT_ENTRY_POINT)
#else
COHORT_C_ENTRY_POINTS(COHORT_ENTRY_POINT)
#define COHORT_FORTRAN_ENTRY_POINT(NAME, COUNT) COHORT_FORTRAN_NAMES(COHORT_ENTRY_POINT, NAME, COUNT)
COHORT_FORTRAN_ENTRY_POINTS(COHORT_FORTRAN_ENTRY_POINT)
#endif

}  // namespace cohort::preload
