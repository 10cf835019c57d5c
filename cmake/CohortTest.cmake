# cohort_add_test(NAME x COMMAND program ARGUMENT...): add_test, for a test that explains itself when it hangs.
#
# It runs under `bounded` (tests/support/bounded.cpp), which ends it when its TIMEOUT passes, after the log has got the
# stacks of all its processes. The TIMEOUT may be set later in the same folder, as any property; without one it is 120 s.
# CTest's own time-out, which leaves no word behind, comes well after.
function(cohort_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "COMMAND")
  list(POP_FRONT ARG_COMMAND program)
  if(TARGET ${program})
    set(program $<TARGET_FILE:${program}>)
  endif()
  add_test(NAME ${ARG_NAME} COMMAND bounded ${program} ${ARG_COMMAND})
  cmake_language(DEFER GET_CALL bounds_of_tests is_deferred)
  if(NOT is_deferred)
    cmake_language(DEFER ID bounds_of_tests CALL cohort_set_bounds)
  endif()
endfunction()

function(cohort_set_bounds)
  set(time_to_explain 120)  # several times what `bounded` takes at most
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    get_property(bound TEST ${test} PROPERTY TIMEOUT)
    if(NOT bound)
      set(bound 120)
    endif()
    math(EXPR timeout "${bound} + ${time_to_explain}")
    set_property(TEST ${test} PROPERTY TIMEOUT ${timeout})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT TEST_TIME_LIMIT_SECONDS=${bound})
  endforeach()
endfunction()
