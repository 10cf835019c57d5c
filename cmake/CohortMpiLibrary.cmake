# cohort_mpi_library(library version): the MPI library that find_package(MPI) has found, by its header, as
# "Open MPI" and "4.1.4"; both are empty for a library that is not known here. MVAPICH and Cray's MPI count
# as the MPICH that they derive from. The installed package asks, too: Cohort's archives fit only the library
# whose header they were compiled with, and linking with another one is not noticed before the program fails.
function(cohort_mpi_library library version)
  set(source ${CMAKE_BINARY_DIR}/CMakeFiles/cohort_mpi_library.c)
  file(CONFIGURE OUTPUT ${source} CONTENT [[
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION)
cohort_mpi_library: Open MPI: OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION
#elif defined(I_MPI_VERSION)
cohort_mpi_library: Intel MPI: I_MPI_VERSION
#elif defined(MPICH_VERSION)
cohort_mpi_library: MPICH: MPICH_VERSION
#endif
]])
  set(folders ${MPI_C_INCLUDE_DIRS})
  list(TRANSFORM folders PREPEND -I)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -E ${folders} ${source} OUTPUT_VARIABLE text ERROR_QUIET)
  set(${library} "" PARENT_SCOPE)
  set(${version} "" PARENT_SCOPE)
  if(text MATCHES "\ncohort_mpi_library: ([^:]*): ([^\n]*)")
    set(${library} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    string(REPLACE "\"" "" number "${CMAKE_MATCH_2}")
    string(STRIP "${number}" number)
    string(REGEX REPLACE " +" "." number "${number}")
    set(${version} "${number}" PARENT_SCOPE)
  endif()
endfunction()
