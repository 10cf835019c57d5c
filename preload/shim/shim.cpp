// What stands in place of the MPI's functions: each carries the call out if it can, and otherwise calls the
// MPI's with its arguments as they came.
#include "../shim_interface.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>

#include <fmt/format.h>

#include <cohort/base/log.h>

#include "../entry_points.h"
#include "../program_memory.h"
#include "calls.h"
#include "communicators.h"
#include "mpi_calls.h"

namespace cohort::preload {
namespace {

CohortFindNext find_next = nullptr;  ///< set once, before all else

/// The MPI's function of this name, looked for when it is first needed.
template <class Function>
class Next {
 public:
  explicit constexpr Next(const char* name) noexcept : name_(name) {}

  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    Function function = function_.load(std::memory_order_acquire);
    if (function == nullptr) [[unlikely]] {
      function = reinterpret_cast<Function>(find_next(name_));
      function_.store(function, std::memory_order_release);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<Function> function_{nullptr};
};

/// How often a collective was called, by who carried it out. Each is counted by one thread at a time, or a
/// call is lost.
struct Counts {
  std::atomic<std::uint64_t> by[kWays];

  void count(By who) noexcept {
    std::atomic<std::uint64_t>& calls = by[static_cast<std::size_t>(who)];
    calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};
template <auto kAttempt>
Counts counts_of;

template <auto kAttempt, class... Arguments>
Outcome attempt(Arguments... arguments) {
  // Not even a datatype can be asked about then: a program may have sessions of MPI alone.
  if (!Communicators::of_this_process().are_running()) return {.by = By::kMpiForCommunicator};
  Outcome outcome{.by = By::kMpiForArguments};
  try {
    outcome = kAttempt(arguments...);
  } catch (const std::exception& error) {  // before a call: the MPI has no answer about its arguments
    logging::warning("a collective is left to the MPI: {}", error.what());
  }
  counts_of<kAttempt>.count(outcome.by);
  return outcome;
}

/// A communicator is the last argument of each collective.
template <class... Arguments>
auto last_of(Arguments... arguments) {
  return std::get<sizeof...(Arguments) - 1>(std::tuple(arguments...));
}

/// Whether the MPI has found the arguments wrong; the classes of those errors come first.
bool has_wrong_arguments(int status) { return mpi::error_class(status) < MPI_ERR_TRUNCATE; }

/// The MPI has made a call in place of Cohort. It counts until its communicator's members connect, and after
/// that as one that Cohort has left to it. Calls with wrong arguments do not, since one rank may make them
/// alone.
void note(const Outcome& outcome, int status, MPI_Comm comm) {
  if (status == MPI_SUCCESS) [[likely]] {
    if (outcome.by == By::kMpiForCommunicator) Communicators::of_this_process().note_call(comm);
  } else if (outcome.by != By::kMpiForCommunicator && outcome.by != By::kMpiForArguments &&
             has_wrong_arguments(status)) {
    Communicators::of_this_process().take_back_left(comm);
  }
}

/// The name of a function, as a template's argument.
template <std::size_t kSize>
struct Name {
  constexpr Name(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }  // NOLINT: a literal
  char text[kSize];
};

/// A function in place of the MPI's of the same name.
template <Name kName, auto kAttempt>
struct Function;

template <Name kName, class... Arguments, Outcome (*kAttempt)(Arguments...)>
struct Function<kName, kAttempt> {
  static int call(Arguments... arguments) {
    const Outcome outcome = attempt<kAttempt>(arguments...);
    if (outcome.served()) return outcome.status;
    const int status = next(arguments...);
    note(outcome, status, last_of(arguments...));
    return status;
  }
  static inline Next<int (*)(Arguments...)> next{kName.text};
};

// ---- the start and the end of MPI

/// Says of the job's first rank what became of its calls.
void report_calls() {
  struct Line {
    const char* name;
    const Counts* counts[2];
  };
// NOLINTBEGIN(bugprone-macro-parentheses): names of functions
#define COHORT_LINE(NAME, FUNCTION)                                               \
  {                                                                               \
    "MPI_" NAME, { &counts_of<&FUNCTION<int>>, &counts_of<&FUNCTION<MPI_Count>> } \
  }
#define COHORT_LINE_V(NAME, FUNCTION)                                                            \
  {                                                                                              \
    "MPI_" NAME, { &counts_of<&FUNCTION<int, int>>, &counts_of<&FUNCTION<MPI_Count, MPI_Aint>> } \
  }
  const Line lines[] = {
      {"MPI_Barrier", {&counts_of<&barrier>, nullptr}},
      COHORT_LINE("Bcast", bcast),
      COHORT_LINE("Reduce", reduce),
      COHORT_LINE("Allreduce", allreduce),
      COHORT_LINE("Allgather", allgather),
      COHORT_LINE_V("Allgatherv", allgatherv),
      COHORT_LINE("Gather", gather),
      COHORT_LINE("Scatter", scatter),
      COHORT_LINE("Reduce_scatter", reduce_scatter),
      COHORT_LINE("Reduce_scatter_block", reduce_scatter_block),
      COHORT_LINE("Alltoall", alltoall),
      COHORT_LINE_V("Alltoallv", alltoallv),
      COHORT_LINE_V("Gatherv", gatherv),
      COHORT_LINE_V("Scatterv", scatterv),
      COHORT_LINE_V("Alltoallw", alltoallw),
      COHORT_LINE("Scan", scan),
      COHORT_LINE("Exscan", exscan),
  };
#undef COHORT_LINE_V
#undef COHORT_LINE
  // NOLINTEND(bugprone-macro-parentheses)
  static constexpr const char* kWhy[kWays] = {"by Cohort",
                                              "by the MPI for their communicator",
                                              "by the MPI for their operator or datatype",
                                              "by the MPI for blocks of different sizes",
                                              "by the MPI for their kind",
                                              "by the MPI for speed",
                                              "by the MPI for wrong arguments"};
  for (const Line& line : lines) {
    std::string text;
    for (std::size_t way = 0; way < kWays; ++way) {
      std::uint64_t calls = 0;
      for (const Counts* counts : line.counts) {
        if (counts != nullptr) calls += counts->by[way].load(std::memory_order_relaxed);
      }
      if (calls > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", calls, kWhy[way]);
    }
    if (!text.empty()) fmt::print(stderr, "cohort: {} of rank 0: {}\n", line.name, text);
  }
  if (const std::size_t moved = ProgramMemory::of_this_process().moved_bytes(); moved > 0)
    fmt::print(stderr, "cohort: {} KiB of rank 0's memory were moved into the node's shared memory\n",
               moved >> 10);
}

int started(int status) {
  if (status == MPI_SUCCESS) Communicators::of_this_process().start();
  return status;
}

Next<int (*)(int*, char***)> next_init("MPI_Init");
Next<int (*)(int*, char***, int, int*)> next_init_thread("MPI_Init_thread");
Next<int (*)()> next_finalize("MPI_Finalize");

int init(int* argc, char*** argv) { return started(next_init(argc, argv)); }
int init_thread(int* argc, char*** argv, int required, int* provided) {
  return started(next_init_thread(argc, argv, required, provided));
}
int finalize() {
  if (Communicators::of_this_process().stop()) report_calls();
  return next_finalize();
}

// ---- the end of communicators

/// While it lives, the MPI ends a communicator.
class EndOfCommunicator {
 public:
  explicit EndOfCommunicator(MPI_Comm comm) { Communicators::of_this_process().begin_end_of(comm); }
  ~EndOfCommunicator() { Communicators::of_this_process().finish_end(); }
  EndOfCommunicator(const EndOfCommunicator&) = delete;
  EndOfCommunicator& operator=(const EndOfCommunicator&) = delete;
};

/// MPI_Comm_free and MPI_Comm_disconnect.
template <Name kName>
struct EndingFunction {
  static int call(MPI_Comm* comm) {
    const EndOfCommunicator end(comm == nullptr ? MPI_COMM_NULL : *comm);
    return next(comm);
  }
  static inline Next<int (*)(MPI_Comm*)> next{kName.text};
};

// ---- windows

/// An argument or a result: an integer or a pointer.
using Word = long;

/// MPI_Win_create and the like, of C and of Fortran.
template <Name kName, class... Words>
struct WindowFunction {
  static Word call(Words... words) {
    ProgramMemory::of_this_process().note_windows();
    return next(words...);
  }
  static inline Next<Word (*)(Words...)> next{kName.text};
};

// ---- Fortran

#if defined(COHORT_ABI_OPEN_MPI)

/// What Open MPI's Fortran passes for MPI_IN_PLACE and MPI_BOTTOM: the address of a common block, which has a
/// name for each way in which compilers make one. The program has a block of its own, by which the linker
/// replaces the library's; where the library was loaded for a module of Python, it has its own.
class Sentinel {
 public:
  Sentinel(std::initializer_list<const char*> names, void* meaning) : meaning_(meaning) {
    for (const char* const name : names) {
      for (void* const address : {::dlsym(RTLD_DEFAULT, name), find_next(name)}) {
        if (address != nullptr) addresses_[count_++] = address;
      }
    }
  }
  [[nodiscard]] bool is(const void* address) const noexcept {
    return std::find(addresses_, addresses_ + count_, address) != addresses_ + count_;
  }
  [[nodiscard]] void* meaning() const noexcept { return meaning_; }

 private:
  const void* addresses_[8] = {};
  std::size_t count_ = 0;
  void* meaning_;
};

void* buffer_of(void* address) {
  static const Sentinel in_place(
      {"mpi_fortran_in_place_", "mpi_fortran_in_place__", "mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE"},
      MPI_IN_PLACE);
  static const Sentinel bottom(
      {"mpi_fortran_bottom_", "mpi_fortran_bottom__", "mpi_fortran_bottom", "MPI_FORTRAN_BOTTOM"}, nullptr);
  if (in_place.is(address)) return in_place.meaning();
  return bottom.is(address) ? bottom.meaning() : address;
}

/// An argument of C from one of Fortran, which is the address of a number, or of a buffer.
template <class Argument>
Argument from_fortran(void* argument) {
  if constexpr (std::is_same_v<Argument, int>)
    return *static_cast<MPI_Fint*>(argument);
  else if constexpr (std::is_same_v<Argument, MPI_Comm>)
    return mpi::comm_of(*static_cast<MPI_Fint*>(argument));
  else if constexpr (std::is_same_v<Argument, MPI_Datatype>)
    return mpi::type_of(*static_cast<MPI_Fint*>(argument));
  else if constexpr (std::is_same_v<Argument, MPI_Op>)
    return mpi::op_of(*static_cast<MPI_Fint*>(argument));
  else if constexpr (std::is_same_v<Argument, const int*>)
    return static_cast<const int*>(argument);
  else if constexpr (std::is_same_v<Argument, const MPI_Datatype*>)
    return nullptr;  // Fortran has numbers there, and only the MPI's own function reads them
  else
    return buffer_of(argument);
}

template <class>
using Pointer = void*;

/// A function in place of the MPI's for Fortran.
template <Name kName, auto kAttempt>
struct FortranFunction;

template <Name kName, class... Arguments, Outcome (*kAttempt)(Arguments...)>
struct FortranFunction<kName, kAttempt> {
  static void call(Pointer<Arguments>... arguments, MPI_Fint* error) {
    const Outcome outcome = attempt<kAttempt>(from_fortran<Arguments>(arguments)...);
    MPI_Fint status = outcome.status;
    if (!outcome.served()) {
      next(arguments..., &status);
      note(outcome, status, from_fortran<MPI_Comm>(last_of(arguments...)));
    }
    if (error != nullptr) *error = status;
  }
  static inline Next<void (*)(Pointer<Arguments>..., MPI_Fint*)> next{kName.text};
};

/// MPI_Init and the like, whose arguments are the MPI's own affair.
template <Name kName, bool kEnds, class... Arguments>
struct FortranBoundary {
  static void call(Arguments*... arguments, MPI_Fint* error) {
    MPI_Fint status = MPI_SUCCESS;
    MPI_Fint* const told = error == nullptr ? &status : error;
    if (kEnds && Communicators::of_this_process().stop()) report_calls();
    next(arguments..., told);
    if (!kEnds) started(*told);
  }
  static inline Next<void (*)(Arguments*..., MPI_Fint*)> next{kName.text};
};

template <Name kName>
struct FortranEndingFunction {
  static void call(MPI_Fint* comm, MPI_Fint* error) {
    const EndOfCommunicator end(mpi::comm_of(*comm));
    next(comm, error);
  }
  static inline Next<void (*)(MPI_Fint*, MPI_Fint*)> next{kName.text};
};

#endif

struct Entry {
  const char* name;
  void* function;
};

template <class FunctionPointer>
void* address_of(FunctionPointer function) {
  return reinterpret_cast<void*>(function);
}

// NOLINTBEGIN(bugprone-macro-parentheses): names of functions
#define COHORT_BOTH(NAME, FUNCTION)                                                       \
  {"MPI_" NAME, address_of(&Function<"MPI_" NAME, &FUNCTION<int>>::call)}, {              \
    "MPI_" NAME "_c", address_of(&Function<"MPI_" NAME "_c", &FUNCTION<MPI_Count>>::call) \
  }
#define COHORT_BOTH_V(NAME, FUNCTION)                                                               \
  {"MPI_" NAME, address_of(&Function<"MPI_" NAME, &FUNCTION<int, int>>::call)}, {                   \
    "MPI_" NAME "_c", address_of(&Function<"MPI_" NAME "_c", &FUNCTION<MPI_Count, MPI_Aint>>::call) \
  }

std::span<const Entry> c_entries() {
  static const Entry entries[] = {
      {"MPI_Init", address_of(&init)},
      {"MPI_Init_thread", address_of(&init_thread)},
      {"MPI_Finalize", address_of(&finalize)},
      {"MPI_Comm_free", address_of(&EndingFunction<"MPI_Comm_free">::call)},
      {"MPI_Comm_disconnect", address_of(&EndingFunction<"MPI_Comm_disconnect">::call)},
      {"MPI_Win_create",
       address_of(&WindowFunction<"MPI_Win_create", Word, Word, Word, Word, Word, Word>::call)},
      {"MPI_Win_allocate",
       address_of(&WindowFunction<"MPI_Win_allocate", Word, Word, Word, Word, Word, Word>::call)},
      {"MPI_Win_create_dynamic",
       address_of(&WindowFunction<"MPI_Win_create_dynamic", Word, Word, Word>::call)},
      {"MPI_Barrier", address_of(&Function<"MPI_Barrier", &barrier>::call)},
      COHORT_BOTH("Bcast", bcast),
      COHORT_BOTH("Reduce", reduce),
      COHORT_BOTH("Allreduce", allreduce),
      COHORT_BOTH("Allgather", allgather),
      COHORT_BOTH_V("Allgatherv", allgatherv),
      COHORT_BOTH("Gather", gather),
      COHORT_BOTH("Scatter", scatter),
      COHORT_BOTH("Reduce_scatter", reduce_scatter),
      COHORT_BOTH("Reduce_scatter_block", reduce_scatter_block),
      COHORT_BOTH("Alltoall", alltoall),
      COHORT_BOTH_V("Alltoallv", alltoallv),
      COHORT_BOTH_V("Gatherv", gatherv),
      COHORT_BOTH_V("Scatterv", scatterv),
      COHORT_BOTH_V("Alltoallw", alltoallw),
      COHORT_BOTH("Scan", scan),
      COHORT_BOTH("Exscan", exscan),
  };
  return entries;
}

#if defined(COHORT_ABI_OPEN_MPI)

#define COHORT_FORTRAN(NAME, ...)                                                 \
  {NAME "_", address_of(&FortranFunction<NAME "_", &__VA_ARGS__>::call)},         \
      {NAME "__", address_of(&FortranFunction<NAME "__", &__VA_ARGS__>::call)}, { \
    NAME "_f08_", address_of(&FortranFunction<NAME "_f08_", &__VA_ARGS__>::call)  \
  }
#define COHORT_FORTRAN_BOUNDARY(NAME, ...)                                       \
  {NAME "_", address_of(&FortranBoundary<NAME "_", __VA_ARGS__>::call)},         \
      {NAME "__", address_of(&FortranBoundary<NAME "__", __VA_ARGS__>::call)}, { \
    NAME "_f08_", address_of(&FortranBoundary<NAME "_f08_", __VA_ARGS__>::call)  \
  }

#define COHORT_FORTRAN_WINDOW(NAME, ...)                                        \
  {NAME "_", address_of(&WindowFunction<NAME "_", __VA_ARGS__>::call)},         \
      {NAME "__", address_of(&WindowFunction<NAME "__", __VA_ARGS__>::call)}, { \
    NAME "_f08_", address_of(&WindowFunction<NAME "_f08_", __VA_ARGS__>::call)  \
  }

#define COHORT_FORTRAN_END(NAME)                                          \
  {NAME "_", address_of(&FortranEndingFunction<NAME "_">::call)},         \
      {NAME "__", address_of(&FortranEndingFunction<NAME "__">::call)}, { \
    NAME "_f08_", address_of(&FortranEndingFunction<NAME "_f08_">::call)  \
  }

std::span<const Entry> fortran_entries() {
  static const Entry entries[] = {
      COHORT_FORTRAN_END("mpi_comm_free"),
      COHORT_FORTRAN_END("mpi_comm_disconnect"),
      COHORT_FORTRAN_WINDOW("mpi_win_create", Word, Word, Word, Word, Word, Word, Word),
      COHORT_FORTRAN_WINDOW("mpi_win_allocate", Word, Word, Word, Word, Word, Word, Word),
      COHORT_FORTRAN_WINDOW("mpi_win_allocate_cptr", Word, Word, Word, Word, Word, Word, Word),
      COHORT_FORTRAN_WINDOW("mpi_win_create_dynamic", Word, Word, Word, Word),
      COHORT_FORTRAN_BOUNDARY("mpi_init", false),
      COHORT_FORTRAN_BOUNDARY("mpi_init_thread", false, MPI_Fint, MPI_Fint),
      COHORT_FORTRAN_BOUNDARY("mpi_finalize", true),
      COHORT_FORTRAN("mpi_barrier", barrier),
      COHORT_FORTRAN("mpi_bcast", bcast<int>),
      COHORT_FORTRAN("mpi_reduce", reduce<int>),
      COHORT_FORTRAN("mpi_allreduce", allreduce<int>),
      COHORT_FORTRAN("mpi_allgather", allgather<int>),
      COHORT_FORTRAN("mpi_allgatherv", allgatherv<int, int>),
      COHORT_FORTRAN("mpi_gather", gather<int>),
      COHORT_FORTRAN("mpi_scatter", scatter<int>),
      COHORT_FORTRAN("mpi_reduce_scatter", reduce_scatter<int>),
      COHORT_FORTRAN("mpi_reduce_scatter_block", reduce_scatter_block<int>),
      COHORT_FORTRAN("mpi_alltoall", alltoall<int>),
      COHORT_FORTRAN("mpi_alltoallv", alltoallv<int, int>),
      COHORT_FORTRAN("mpi_gatherv", gatherv<int, int>),
      COHORT_FORTRAN("mpi_scatterv", scatterv<int, int>),
      COHORT_FORTRAN("mpi_alltoallw", alltoallw<int, int>),
      COHORT_FORTRAN("mpi_scan", scan<int>),
      COHORT_FORTRAN("mpi_exscan", exscan<int>),
  };
  return entries;
}

#else

/// MPICH's functions for Fortran call those of C, with arguments as these have them.
std::span<const Entry> fortran_entries() { return {}; }

#endif

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace
}  // namespace cohort::preload

void cohort_shim_open(CohortFindNext find_next) { cohort::preload::find_next = find_next; }

void* cohort_shim_function(const char* name) {
  using namespace cohort::preload;
  for (const std::span<const Entry> entries : {c_entries(), fortran_entries()}) {
    for (const Entry& entry : entries) {
      if (std::strcmp(entry.name, name) == 0) return entry.function;
    }
  }
  return nullptr;
}

/// Registers the destructor of a static object: of this library's, none. A program may call MPI_Finalize from
/// a function that it has given to atexit() before MPI_Init, which runs after the destructors of what was
/// loaded since.
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the ABI's
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
