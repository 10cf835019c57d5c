# Finds libzip, whose own CMake package also requires its programs, which are separate packages in Debian.
include(${CMAKE_CURRENT_LIST_DIR}/FindThroughPkgConfig.cmake)
find_through_pkg_config(Libzip MODULE libzip HEADER zip.h LIBRARY zip)
