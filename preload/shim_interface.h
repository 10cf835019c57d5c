// How libcohort-mpi.so, which stands before the MPI library, and the shim for that library's binary interface
// find each other. The shim is opened once, at the first call of an MPI function.
#pragma once

extern "C" {

/// A function of the MPI library, or of a tool between it and libcohort-mpi.so, by its name; null if there is
/// none. For the shim.
using CohortFindNext = void* (*)(const char* name);

/// Called once, before all else of the shim.
[[gnu::visibility("default")]] void cohort_shim_open(CohortFindNext find_next);

/// The shim's function in place of the one of this name; null where that one is to be called itself.
[[gnu::visibility("default")]] void* cohort_shim_function(const char* name);
}
