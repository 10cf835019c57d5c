# Finds hwloc, which does not have a CMake package in every distribution.
include(${CMAKE_CURRENT_LIST_DIR}/FindThroughPkgConfig.cmake)
find_through_pkg_config(Hwloc MODULE hwloc HEADER hwloc.h LIBRARY hwloc)
