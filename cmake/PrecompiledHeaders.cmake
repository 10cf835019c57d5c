# use_precompiled_headers(folder): the sources of all tests in this folder and below find the headers of the
# standard library and of GoogleTest already compiled; without, to read them is a fifth of the work. Called last,
# when all targets are known.
#
# Cohort's own headers are not among them: a change to one recompiles what includes it and no more. Nor have the
# libraries any: each public header stands first in a source, which shows that it compiles alone.
set(precompiled ${CMAKE_CURRENT_BINARY_DIR}/precompiled_headers.cpp)
file(CONFIGURE OUTPUT ${precompiled} CONTENT "")
add_library(precompiled_headers OBJECT ${precompiled})
target_link_libraries(precompiled_headers PRIVATE cohort_warnings GTest::gmock)
target_compile_features(precompiled_headers PRIVATE cxx_std_20)
target_precompile_headers(precompiled_headers PRIVATE
  <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstdlib> <cstring> <filesystem> <fstream> <functional> <limits>
  <map> <memory> <mutex> <numeric> <optional> <set> <span> <sstream> <string> <thread> <tuple> <variant> <vector>
  <gmock/gmock.h> <gtest/gtest.h>)

function(use_precompiled_headers folder)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(links ${target} LINK_LIBRARIES)
    get_target_property(has_other_options ${target} DISABLE_PRECOMPILE_HEADERS)
    # Compiled with the same options, and not libtorch's, which choose another ABI of strings.
    if(target STREQUAL "precompiled_headers" OR has_other_options OR links MATCHES "cohort_torch")
      continue()
    elseif(links MATCHES "(GTest::gmock|cohort_([a-z]*_)?test_support|cohort_[a-z]*_test_main|conformance_replay)")
      target_precompile_headers(${target} REUSE_FROM precompiled_headers)
    endif()
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder IN LISTS subfolders)
    use_precompiled_headers(${subfolder})
  endforeach()
endfunction()
