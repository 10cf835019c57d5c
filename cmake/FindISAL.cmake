# Finds Intel's Intelligent Storage Acceleration Library.
include(${CMAKE_CURRENT_LIST_DIR}/FindThroughPkgConfig.cmake)
find_through_pkg_config(ISAL MODULE libisal HEADER isa-l/crc.h LIBRARY isal)
