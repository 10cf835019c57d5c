# add_mpi_test(name RANKS 1 2 3 4 7 SOURCES x.cpp [LINKS mpi strategy] [TIMEOUT 60] [ENVIRONMENT A=1])
#
# Builds a GoogleTest program that runs on every rank (its main is in tests/support/mpi_main.cpp), with the
# contracts of communicators at hand (test_support), and registers one CTest entry per number of ranks,
# called name.Nranks. All of them need the fixture `launcher`: a smoke test that uses MPI alone, so that a
# broken launcher is not mistaken for a broken library.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version ERROR_QUIET)

set(COHORT_MPIEXEC_FLAGS "")
if(mpiexec_version MATCHES "Open MPI|OpenRTE")
  # More ranks than cores must yield while they wait, and nothing needs the network here.
  set(COHORT_MPIEXEC_FLAGS --oversubscribe --mca mpi_yield_when_idle 1 --mca btl self,vader
      --mca oob_tcp_if_include lo)
endif()

# cohort_mpi_command(out N program args...): the command line that starts N ranks.
function(cohort_mpi_command out ranks)
  set(${out} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${COHORT_MPIEXEC_FLAGS} ${MPIEXEC_PREFLAGS}
      ${ARGN} PARENT_SCOPE)
endfunction()

# cohort_mpi_properties(test N TIMEOUT): the properties of every test under the launcher. The leak
# suppressions match only when every stack is unwound in full. The watchdog of mpi_main names the test that
# hangs, so it comes before CTest's own time-out.
function(cohort_mpi_properties test ranks timeout)
  math(EXPR watchdog_limit "${timeout} - 10")
  set_tests_properties(${test} PROPERTIES
    PROCESSORS ${ranks} TIMEOUT ${timeout} LABELS mpi FIXTURES_REQUIRED launcher
    ENVIRONMENT "TEST_TIME_LIMIT_SECONDS=${watchdog_limit};OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;ASAN_OPTIONS=fast_unwind_on_malloc=0;LSAN_OPTIONS=suppressions=${cohort_SOURCE_DIR}/tests/lsan.supp:print_suppressions=0")
endfunction()

function(add_mpi_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "RANKS;SOURCES;LINKS;ENVIRONMENT" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  list(TRANSFORM ARG_LINKS PREPEND cohort_)
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE cohort_mpi_test_main ${ARG_LINKS} cohort_test_support cohort_warnings)
  foreach(ranks IN LISTS ARG_RANKS)
    cohort_mpi_command(command ${ranks} $<TARGET_FILE:${name}_test>)
    add_test(NAME ${name}.${ranks}ranks COMMAND ${command})
    cohort_mpi_properties(${name}.${ranks}ranks ${ranks} ${ARG_TIMEOUT})
    set_property(TEST ${name}.${ranks}ranks APPEND PROPERTY ENVIRONMENT ${ARG_ENVIRONMENT})
  endforeach()
endfunction()
