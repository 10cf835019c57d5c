# Finds NCCL's header, from a distribution's package, a Python wheel, or the CUDA toolkit's folder.
#   NCCL_FOUND, NCCL_VERSION, NCCL_INCLUDE_DIR, target NCCL::NCCL (the header alone)
#   NCCL_LIBRARY   the library of the same installation, for programs that open it; may be empty
#
# NCCL_ROOT names an installation. Nothing links the library: two versions often lie on one machine,
# and -lnccl would take whichever comes first.
find_package(Python3 QUIET COMPONENTS Interpreter)
set(nccl_wheels)
if(Python3_SITELIB)
  file(GLOB nccl_wheels ${Python3_SITELIB}/nvidia/nccl)
endif()
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${nccl_wheels} PATH_SUFFIXES include)

set(NCCL_VERSION)
if(NCCL_INCLUDE_DIR)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_numbers REGEX "^#define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  list(TRANSFORM nccl_numbers REPLACE "^.* ([0-9]+).*$" "\\1")
  list(JOIN nccl_numbers "." NCCL_VERSION)
  # The headers of a distribution and of a toolkit lie in <prefix>/include or <prefix>/targets/*/include.
  get_filename_component(nccl_prefix ${NCCL_INCLUDE_DIR} DIRECTORY)
  find_library(NCCL_LIBRARY NAMES libnccl.so.2 PATHS ${nccl_prefix}
    PATH_SUFFIXES lib64 lib lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_DEFAULT_PATH)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
if(NOT NCCL_LIBRARY)
  set(NCCL_LIBRARY "")
endif()

if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL INTERFACE IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR})
endif()
