# How this tree is built when it is the top-level project; nothing here reaches users
# who add Cohort to theirs.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${cohort_BINARY_DIR}/bin)

# Sources of one target are compiled together, eight at a time: most of the time goes into headers and templates that
# they share. Names in unnamed namespaces must therefore differ within a target. `debug` and lint compile each source
# by itself, with all that it includes.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
if(CMAKE_UNITY_BUILD)
  # GCC takes a source that is included for a header, whose unnamed namespace would differ between sources.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>")
endif()
# GCC collects its garbage from 128 MiB on, which is a tenth of the time of such a source.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")

# GNU's faster linker takes a third of the time of its usual one.
find_program(COHORT_GOLD ld.gold)
mark_as_advanced(COHORT_GOLD)
if(COHORT_GOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options($<$<LINK_LANGUAGE:C,CXX>:-fuse-ld=gold>)
endif()

# Installed shared libraries find each other, and programs find them.
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH from_bin /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${CMAKE_INSTALL_LIBDIR})
  set(CMAKE_INSTALL_RPATH $ORIGIN $ORIGIN/${from_bin})
endif()

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Clones share what is cached, whatever their paths, but for sources that are compiled together: the file that includes
  # them has their paths. Ninja's list of dependencies serves instead of a run of the preprocessor, which costs a tenth
  # where nothing is cached yet. With precompiled headers GCC does not say which macros a source uses; none here depends
  # on the time.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${cohort_SOURCE_DIR} CCACHE_DEPEND=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

if(COHORT_SANITIZE MATCHES "^(address|fuzzer)$")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=address,undefined;-fno-sanitize-recover=undefined;-fno-omit-frame-pointer>")
  # Clang's check of calls through pointers to functions: older ones cannot compile coroutines with it.
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-fno-sanitize=function>")
  add_link_options(-fsanitize=address,undefined)
  if(COHORT_SANITIZE STREQUAL "fuzzer")
    # Coverage counters everywhere; only fuzz targets link libFuzzer's main.
    add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>")
    add_link_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(COHORT_SANITIZE STREQUAL "thread")
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=thread;-fno-omit-frame-pointer>")
  add_link_options(-fsanitize=thread)
elseif(NOT COHORT_SANITIZE STREQUAL "")
  message(FATAL_ERROR "COHORT_SANITIZE is '${COHORT_SANITIZE}'; it takes address, thread, fuzzer or nothing")
endif()
