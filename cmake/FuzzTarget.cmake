# add_fuzz_target(name SOURCES name.cpp LINKS cluster CORPUS corpus/name)
#
# SOURCES define cohort::fuzz::fuzz_one (tests/fuzz/fuzz_one.h). Makes the CTest entry
# fuzz.name, which replays the corpus and mutations of it, and, with COHORT_SANITIZE=fuzzer,
# the program name_fuzz for libFuzzer: bin/name_fuzz -max_total_time=60 NEW_CORPUS CORPUS
function(add_fuzz_target name)
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;LINKS" ${ARGN})
  list(TRANSFORM ARG_LINKS PREPEND cohort_)
  add_executable(${name}_replay ${ARG_SOURCES})
  target_link_libraries(${name}_replay PRIVATE cohort_fuzz_replay ${ARG_LINKS} cohort_warnings)
  if(COHORT_SANITIZE STREQUAL "fuzzer")
    add_executable(${name}_fuzz ${ARG_SOURCES} ${cohort_SOURCE_DIR}/tests/fuzz/libfuzzer.cpp)
    target_link_libraries(${name}_fuzz PRIVATE cohort_fuzz ${ARG_LINKS} cohort_warnings)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzz_targets)
      add_custom_target(fuzz_targets)  # all that the build preset `fuzz` makes
    endif()
    add_dependencies(fuzz_targets ${name}_fuzz)
  endif()
  cmake_path(ABSOLUTE_PATH ARG_CORPUS)
  cohort_add_test(NAME fuzz.${name} COMMAND ${name}_replay ${ARG_CORPUS})
  set_tests_properties(fuzz.${name} PROPERTIES TIMEOUT 120)
endfunction()
