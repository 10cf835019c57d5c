# Finds libzip, whose own CMake package asks for its programs, too, which Debian has in others.
include(${CMAKE_CURRENT_LIST_DIR}/FindThroughPkgConfig.cmake)
find_through_pkg_config(Libzip MODULE libzip HEADER zip.h LIBRARY zip)
