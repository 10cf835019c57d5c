# add_mpi_test(name SOURCES x.cpp [LINKS mpi strategy] [RUN...])
# add_mpi_runs(name [LABEL x] RUN...)
#
#   RUN: [RANKS 1 2 3] [LAYOUTS 4x2 4x0] [ENVIRONMENT A=1] [TIMEOUT 60]
#
# The first builds a GoogleTest program name_test that runs on every rank (its main is in
# tests/support/mpi_main.cpp), with the contracts of communicators at hand (test_support). Both register
# CTest entries for it: name.Nranks for each number of ranks, and name.NxW for N ranks on pretended nodes of
# W workers, of which the last may have fewer; 0: on one node. LABEL x makes them name.x.Nranks. All of them
# need the fixture `launcher`: a smoke test that uses MPI alone, so that a broken launcher is not mistaken
# for a broken library.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version ERROR_QUIET)

set(COHORT_MPIEXEC_FLAGS "")
if(mpiexec_version MATCHES "Open MPI|OpenRTE")
  # More ranks than cores must yield while they wait, and nothing needs the network here: without pml, MPI_Init
  # looks for networks of other kinds for 0.2 s.
  set(COHORT_MPIEXEC_FLAGS --oversubscribe --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,vader
      --mca oob_tcp_if_include lo)
endif()

# cohort_mpi_command(out N program args...): the command line that starts N ranks.
function(cohort_mpi_command out ranks)
  set(${out} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${COHORT_MPIEXEC_FLAGS} ${MPIEXEC_PREFLAGS}
      ${ARGN} PARENT_SCOPE)
endfunction()

# cohort_mpi_properties(test N TIMEOUT): the properties of every test under the launcher. The leak
# suppressions match only when every stack is unwound in full. Several ranks wait for each other most of the time, so
# however many they are they count as two processes, of which tests/run.sh starts three for each core. They
# come first, by their cost, so that a test of one process finds its place beside them. What HWLOC_COMPONENTS saves is
# said in launch/mpirun-env.sh.
function(cohort_mpi_properties test ranks timeout)
  set(processes 2)
  set(cost 10)
  if(ranks EQUAL 1)
    set(processes 1)
    set(cost 0)
  endif()
  set_tests_properties(${test} PROPERTIES
    PROCESSORS ${processes} COST ${cost} TIMEOUT ${timeout} LABELS mpi FIXTURES_REQUIRED launcher
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;HWLOC_COMPONENTS=-gl;ASAN_OPTIONS=fast_unwind_on_malloc=0;LSAN_OPTIONS=suppressions=${cohort_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0")
endfunction()

function(add_mpi_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "RANKS;LAYOUTS;ENVIRONMENT;SOURCES;LINKS" ${ARGN})
  list(TRANSFORM ARG_LINKS PREPEND cohort_)
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE cohort_mpi_test_main ${ARG_LINKS} cohort_test_support cohort_warnings)
  add_mpi_runs(${name} ${ARGN})
endfunction()

function(add_mpi_runs name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "RANKS;LAYOUTS;ENVIRONMENT;SOURCES;LINKS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set(program ${name}_test)
  if(ARG_LABEL)
    string(APPEND name .${ARG_LABEL})
  endif()
  foreach(run IN LISTS ARG_RANKS ARG_LAYOUTS)
    set(environment ${ARG_ENVIRONMENT})
    set(suffix ${run}ranks)
    set(ranks ${run})
    if(run MATCHES "^([0-9]+)x([0-9]+)$")
      set(ranks ${CMAKE_MATCH_1})
      set(suffix ${run})
      list(APPEND environment COHORT_WORKERS_PER_NODE=${CMAKE_MATCH_2})
    endif()
    cohort_mpi_command(command ${ranks} $<TARGET_FILE:${program}>)
    cohort_add_test(NAME ${name}.${suffix} COMMAND ${command})
    cohort_mpi_properties(${name}.${suffix} ${ranks} ${ARG_TIMEOUT})
    set_property(TEST ${name}.${suffix} APPEND PROPERTY ENVIRONMENT ${environment})
  endforeach()
endfunction()
