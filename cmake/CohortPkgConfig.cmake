# cohort_pkg_config(name LAYERS mpi BESIDE cohort DESCRIPTION "..." [PUBLIC fmt] [PRIVATE spdlog hwloc] [LIBRARIES /usr/lib/libmpi.so])
#
# Installs name.pc, for programs that are not built by CMake: it links the layers, those below them, and what these need by
# the names that pkg-config knows, except what BESIDE, a package of this kind that was made before, brings along. It finds
# its folders from where it lies itself, so an installation can be moved.
function(cohort_pkg_config name)
  cmake_parse_arguments(ARG "" "BESIDE;DESCRIPTION" "LAYERS;PUBLIC;PRIVATE;LIBRARIES" ${ARGN})
  set(reached)
  set(next ${ARG_LAYERS})
  list(TRANSFORM next PREPEND cohort_)
  get_property(all GLOBAL PROPERTY COHORT_LAYERS)
  while(next)
    list(POP_FRONT next target)
    if(target IN_LIST all AND NOT target IN_LIST reached)
      list(APPEND reached ${target})
      get_target_property(links ${target} LINK_LIBRARIES)
      list(APPEND next ${links})
    endif()
  endwhile()
  set_property(GLOBAL PROPERTY COHORT_PKG_CONFIG_${name} ${reached})
  get_property(brought GLOBAL PROPERTY COHORT_PKG_CONFIG_${ARG_BESIDE})

  # Archives are searched once, so those above come first; they were made last.
  set(libs)
  list(REVERSE all)
  foreach(target IN LISTS all)
    if(target IN_LIST reached AND NOT target IN_LIST brought)
      string(APPEND libs " -l${target}")
    endif()
  endforeach()

  # Where there are archives alone, a program links itself what they need.
  set(public ${ARG_BESIDE} ${ARG_PUBLIC})
  set(private ${ARG_PRIVATE})
  set(private_libs ${ARG_LIBRARIES})
  if(NOT BUILD_SHARED_LIBS)
    list(APPEND public ${private})
    list(JOIN private_libs " " more)
    string(APPEND libs " ${more} -pthread")
    set(private)
    set(private_libs)
  endif()
  list(JOIN public ", " public)
  list(JOIN private ", " private)
  list(JOIN private_libs " " private_libs)

  file(RELATIVE_PATH up /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  string(REGEX REPLACE "/$" "" up "${up}")
  file(CONFIGURE OUTPUT ${name}.pc @ONLY CONTENT [[
prefix=${pcfiledir}/@up@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: @name@
Description: @ARG_DESCRIPTION@
Version: @cohort_VERSION@
Requires: @public@
Requires.private: @private@
Libs: -L${libdir}@libs@
Libs.private: @private_libs@
Cflags: -I${includedir}
]])
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT cohort_development)
endfunction()
