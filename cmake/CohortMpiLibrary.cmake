# Which MPI library is used. The installed package asks, too: Cohort's archives fit only the library, or the ABI,
# whose header they were compiled with, and linking with another one is not noticed before the program fails.
#
# A user chooses it with MPI_C_COMPILER, with MPI_CXX_COMPILER or with MPI_HOME; FindMPI looks at the first alone.

# cohort_choose_mpi(), before find_package(MPI COMPONENTS C): whichever of the three is set decides. An MPI_HOME of
# the environment counts where none is.
function(cohort_choose_mpi)
  if(MPI_CXX_COMPILER AND NOT MPI_C_COMPILER)
    find_program(cxx_wrapper "${MPI_CXX_COMPILER}" NO_CACHE)
    if(NOT cxx_wrapper)
      message(FATAL_ERROR "MPI_CXX_COMPILER is ${MPI_CXX_COMPILER}, which is no program")
    endif()
    get_filename_component(folder "${cxx_wrapper}" DIRECTORY)
    get_filename_component(name "${cxx_wrapper}" NAME)
    # mpicxx, mpic++, mpiCC, with an ending such as _abi or .mpich; Intel's mpiicpc and mpiicpx; Cray's CC.
    string(REGEX REPLACE "^mpi(cxx|c\\+\\+|CC)" "mpicc" c_name "${name}")
    string(REGEX REPLACE "^mpiicpc" "mpiicc" c_name "${c_name}")
    string(REGEX REPLACE "^mpiicpx" "mpiicx" c_name "${c_name}")
    string(REGEX REPLACE "^CC$" "cc" c_name "${c_name}")
    if(NOT c_name STREQUAL name AND EXISTS "${folder}/${c_name}")
      set(MPI_C_COMPILER "${folder}/${c_name}" CACHE FILEPATH "MPI's wrapper of the C compiler")
    elseif(NOT MPI_CXX_COMPILER STREQUAL CMAKE_CXX_COMPILER)  # FindMPI sets that one where it needs no wrapper
      message(FATAL_ERROR "MPI_CXX_COMPILER is ${cxx_wrapper}, but which C compiler belongs to it is not clear; set "
        "MPI_C_COMPILER, which is all that Cohort uses")
    endif()
  endif()
  set(home "${MPI_HOME}")
  if(NOT home AND NOT MPI_C_COMPILER)
    set(home "$ENV{MPI_HOME}")
  endif()
  if(home AND NOT MPI_C_COMPILER)
    find_program(c_wrapper NAMES mpicc mpiicx mpiicc HINTS "${home}/bin" "${home}" NO_DEFAULT_PATH NO_CACHE)
    if(NOT c_wrapper)
      message(FATAL_ERROR "MPI_HOME is ${home}, where there is no bin/mpicc")
    endif()
    set(MPI_C_COMPILER "${c_wrapper}" CACHE FILEPATH "MPI's wrapper of the C compiler")
  endif()
  cohort_tell_intel_wrapper_its_place()
  # The launcher beside the compiler, whichever comes first in PATH.
  if(MPI_C_COMPILER AND NOT MPIEXEC_EXECUTABLE)
    find_program(c_wrapper "${MPI_C_COMPILER}" NO_CACHE)
    get_filename_component(folder "${c_wrapper}" DIRECTORY)
    get_filename_component(name "${c_wrapper}" NAME)
    string(REGEX REPLACE "^[a-z]+" "" ending "${name}")
    find_program(MPIEXEC_EXECUTABLE NAMES mpiexec${ending} mpirun${ending} mpiexec mpirun HINTS "${folder}"
      NO_DEFAULT_PATH DOC "MPI's launcher")
  endif()
  # FindMPI keeps what it found through another wrapper.
  if(COHORT_MPI_C_COMPILER AND NOT COHORT_MPI_C_COMPILER STREQUAL "${MPI_C_COMPILER}")
    message(FATAL_ERROR "this build folder was configured with the MPI of ${COHORT_MPI_C_COMPILER}, and now "
      "MPI_C_COMPILER is ${MPI_C_COMPILER}; take an empty build folder")
  endif()
endfunction()

# Where Intel MPI comes from PyPI, its wrapper names a placeholder for its folder, unless I_MPI_ROOT says where that is. FindMPI
# would then take the library of another MPI.
function(cohort_tell_intel_wrapper_its_place)
  if(NOT MPI_C_COMPILER OR NOT "$ENV{I_MPI_ROOT}" STREQUAL "")
    return()
  endif()
  find_program(c_wrapper "${MPI_C_COMPILER}" NO_CACHE)
  execute_process(COMMAND "${c_wrapper}" -show OUTPUT_VARIABLE shown ERROR_QUIET)
  if(shown MATCHES "I_MPI_SUBSTITUTE_INSTALLDIR")
    get_filename_component(folder "${c_wrapper}" DIRECTORY)
    get_filename_component(folder "${folder}" DIRECTORY)
    set(ENV{I_MPI_ROOT} "${folder}")
  endif()
endfunction()

# cohort_check_mpi(), after it: an error where the three name different libraries.
function(cohort_check_mpi)
  set(COHORT_MPI_C_COMPILER "${MPI_C_COMPILER}" CACHE INTERNAL "what FindMPI's entries are of")
  if(MPI_CXX_COMPILER AND MPI_C_COMPILER)
    cohort_require_same_mpi(MPI_CXX_COMPILER "${MPI_CXX_COMPILER}")
  endif()
  if(MPI_HOME AND MPI_C_COMPILER)
    find_program(c_wrapper NAMES mpicc mpiicx mpiicc HINTS "${MPI_HOME}/bin" "${MPI_HOME}" NO_DEFAULT_PATH NO_CACHE)
    if(NOT c_wrapper)
      message(FATAL_ERROR "MPI_HOME is ${MPI_HOME}, where there is no bin/mpicc, and MPI_C_COMPILER is ${MPI_C_COMPILER}")
    endif()
    cohort_require_same_mpi(MPI_HOME "${c_wrapper}")
  endif()
endfunction()

function(cohort_require_same_mpi variable wrapper)
  cohort_header_of_mpi_wrapper("${MPI_C_COMPILER}" chosen)
  cohort_header_of_mpi_wrapper("${wrapper}" other)
  if(chosen AND other AND NOT chosen STREQUAL other)
    message(FATAL_ERROR "MPI_C_COMPILER is ${MPI_C_COMPILER}, which takes ${chosen}, but ${variable} is "
      "${${variable}}, which takes ${other}; name one MPI library, in an empty build folder, since an earlier "
      "configuration may have set one of the two")
  endif()
endfunction()

# The header that a wrapper compiles with, links followed; empty where it says nothing.
function(cohort_header_of_mpi_wrapper wrapper header)
  set(source ${CMAKE_BINARY_DIR}/CMakeFiles/cohort_mpi_header.c)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include <mpi.h>\n")
  execute_process(COMMAND ${wrapper} -E ${source} OUTPUT_VARIABLE text ERROR_QUIET)
  set(${header} "" PARENT_SCOPE)
  # The last one, for mpi.h may include mpi_abi.h in its place.
  string(REGEX MATCHALL "\n# [0-9]+ \"[^\"\n]*/mpi(_abi)?\\.h\" 1" all "${text}")
  if(all)
    list(GET all -1 last)
    string(REGEX REPLACE ".*\"(.*)\".*" "\\1" last "${last}")
    get_filename_component(last "${last}" REALPATH)
    set(${header} "${last}" PARENT_SCOPE)
  endif()
endfunction()

# cohort_mpi_library(library version abi): the MPI library that find_package(MPI) has found, by its header, as
# "Open MPI", "4.1.4" and "Open MPI's"; all are empty for a library that is not known here. MVAPICH and Cray's MPI
# count as the MPICH that they derive from. The header of the ABI of MPI 5 is that of no library: then they are
# "the MPI ABI", its version and "MPI-5's".
function(cohort_mpi_library library version abi)
  set(source ${CMAKE_BINARY_DIR}/CMakeFiles/cohort_mpi_library.c)
  file(CONFIGURE OUTPUT ${source} CONTENT [[
#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION)
cohort_mpi_library: openmpi: OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION
#elif defined(I_MPI_VERSION)
cohort_mpi_library: intel: I_MPI_VERSION
#elif defined(MPICH_VERSION)
cohort_mpi_library: mpich: MPICH_VERSION
#elif defined(MPI_ABI_VERSION)
cohort_mpi_library: abi: MPI_ABI_VERSION MPI_ABI_SUBVERSION
#endif
]])
  set(arguments ${MPI_C_INCLUDE_DIRS})
  list(TRANSFORM arguments PREPEND -I)
  set(definitions ${MPI_C_COMPILE_DEFINITIONS})
  list(TRANSFORM definitions PREPEND -D)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -E ${MPI_C_COMPILE_OPTIONS} ${definitions} ${arguments} ${source}
    OUTPUT_VARIABLE text ERROR_QUIET)
  set(${library} "" PARENT_SCOPE)
  set(${version} "" PARENT_SCOPE)
  set(${abi} "" PARENT_SCOPE)
  if(text MATCHES "\ncohort_mpi_library: ([^:]*): ([^\n]*)")
    set(name_of_openmpi "Open MPI")
    set(abi_of_openmpi "Open MPI's")
    set(name_of_intel "Intel MPI")
    set(abi_of_intel "MPICH's")
    set(name_of_mpich "MPICH")
    set(abi_of_mpich "MPICH's")
    set(name_of_abi "the MPI ABI")
    set(abi_of_abi "MPI-5's")
    set(${library} "${name_of_${CMAKE_MATCH_1}}" PARENT_SCOPE)
    set(${abi} "${abi_of_${CMAKE_MATCH_1}}" PARENT_SCOPE)
    string(REPLACE "\"" "" number "${CMAKE_MATCH_2}")
    string(STRIP "${number}" number)
    string(REGEX REPLACE " +" "." number "${number}")
    set(${version} "${number}" PARENT_SCOPE)
  endif()
endfunction()
