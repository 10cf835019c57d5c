# Finds libzip through pkg-config: the CMake package of its own asks for the programs, too, which
# Debian has in others:
#   Libzip_FOUND, Libzip_VERSION, target Libzip::Libzip
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_LIBZIP QUIET libzip)
endif()
find_path(Libzip_INCLUDE_DIR zip.h HINTS ${PC_LIBZIP_INCLUDE_DIRS})
find_library(Libzip_LIBRARY zip HINTS ${PC_LIBZIP_LIBRARY_DIRS})
set(Libzip_VERSION ${PC_LIBZIP_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Libzip REQUIRED_VARS Libzip_LIBRARY Libzip_INCLUDE_DIR VERSION_VAR Libzip_VERSION)
mark_as_advanced(Libzip_INCLUDE_DIR Libzip_LIBRARY)

if(Libzip_FOUND AND NOT TARGET Libzip::Libzip)
  add_library(Libzip::Libzip UNKNOWN IMPORTED)
  set_target_properties(Libzip::Libzip PROPERTIES
    IMPORTED_LOCATION ${Libzip_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${Libzip_INCLUDE_DIR})
endif()
