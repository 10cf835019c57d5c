// Finds the MPI library of this process, and which binary interface (ABI) it has.
#pragma once

namespace cohort::preload {

/// The shim for the library, for example `openmpi`.
struct MpiLibrary {
  const char* abi = nullptr;   ///< `openmpi`, `mpich` or `mpi5`; null: one that is not known here
  const char* file = nullptr;  ///< the library's; null: none was found
  char version[128] = {};      ///< the first line of what MPI_Get_library_version says
};

inline constexpr const char* kVersionFunction = "MPI_Get_library_version";

/// The library that `version_function` is of, which is asked.
[[nodiscard]] MpiLibrary describe_mpi_library(void* version_function);

/// Makes the library's functions visible to what is loaded later.
[[nodiscard]] MpiLibrary find_mpi_library();

/// The function of this name that would be called without libcohort-mpi.so: the next one in the order in
/// which the libraries were loaded, or one of a library that was loaded for another alone, as Python's
/// modules are. Null: there is none.
[[nodiscard]] void* find_next(const char* name);

}  // namespace cohort::preload
