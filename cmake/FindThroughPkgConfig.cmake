# find_through_pkg_config(Name MODULE module HEADER header LIBRARY library) is a find module for a library
# that says where it is through pkg-config: Name_FOUND, Name_VERSION, target Name::Name.
include(FindPackageHandleStandardArgs)
find_package(PkgConfig QUIET)

macro(find_through_pkg_config name)
  cmake_parse_arguments(FIND "" "MODULE;HEADER;LIBRARY" "" ${ARGN})
  if(PkgConfig_FOUND)
    pkg_check_modules(PC_${name} QUIET ${FIND_MODULE})
  endif()
  find_path(${name}_INCLUDE_DIR ${FIND_HEADER} HINTS ${PC_${name}_INCLUDE_DIRS})
  find_library(${name}_LIBRARY ${FIND_LIBRARY} HINTS ${PC_${name}_LIBRARY_DIRS})
  mark_as_advanced(${name}_INCLUDE_DIR ${name}_LIBRARY)
  set(${name}_VERSION ${PC_${name}_VERSION})
  find_package_handle_standard_args(${name}
    REQUIRED_VARS ${name}_LIBRARY ${name}_INCLUDE_DIR VERSION_VAR ${name}_VERSION)

  if(${name}_FOUND AND NOT TARGET ${name}::${name})
    add_library(${name}::${name} UNKNOWN IMPORTED)
    set_target_properties(${name}::${name} PROPERTIES
      IMPORTED_LOCATION ${${name}_LIBRARY}
      INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE_DIR})
  endif()
endmacro()
