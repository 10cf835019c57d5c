# Structures of a cache line or four are cleared by stores, as each call makes some: the repeated store that GCC takes
# where it knows no processor begins slowly.
function(cohort_clear_by_stores target)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign>")
  endif()
endfunction()

# One target per layer. A layer links only the layers below it, so a forbidden include of a generated or
# third-party header also fails to compile.
#
#   cohort_layer(device SOURCES ... LINKS base PRIVATE hwloc)
#
# makes the library cohort_device, with the alias cohort::device, and installs it; BUILD_SHARED_LIBS says of
# which kind. What is installed has three components: cohort_runtime, the shared libraries; cohort_development, what a
# program is built with; cohort_tools, the programs. Its public headers are <cohort/device/...>; those for other layers and for the tests alone are
# "device/..." in src/.
function(cohort_layer name)
  cmake_parse_arguments(ARG "" "EXPORT" "SOURCES;LINKS;PUBLIC;PRIVATE" ${ARGN})
  set(target cohort_${name})
  add_library(${target} ${ARG_SOURCES})
  add_library(cohort::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
    VERSION ${cohort_VERSION} SOVERSION ${COHORT_SOVERSION}
    DEFINE_SYMBOL "")  # shared libraries are made of the same objects
  target_compile_features(${target} PUBLIC cxx_std_20)
  cohort_clear_by_stores(${target})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${cohort_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${cohort_BINARY_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${cohort_SOURCE_DIR}/src)
  list(TRANSFORM ARG_LINKS PREPEND cohort_)
  target_link_libraries(${target} PUBLIC ${ARG_LINKS} ${ARG_PUBLIC}
    PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:cohort_warnings>)
  if(NOT ARG_EXPORT)
    set(ARG_EXPORT cohortTargets)
  endif()
  install(TARGETS ${target} EXPORT ${ARG_EXPORT}
    LIBRARY COMPONENT cohort_runtime NAMELINK_COMPONENT cohort_development
    ARCHIVE COMPONENT cohort_development)
  # Lists them all, for the tests.
  set_property(GLOBAL APPEND PROPERTY COHORT_LAYERS ${target})
endfunction()
