# Warnings, sanitizers and other compiler options of this tree, as an interface target that is linked
# privately and never exported: users choose their own.
add_library(cohort_warnings INTERFACE)
# GCC 12 sees overflows in fmt's compile-time parsing that are not there.
# A switch that has no `default` is one that must be thought about whenever its enumeration
# grows, so the one that lacks an enumerator is an error.
set(warnings
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Werror=switch
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>
  $<$<BOOL:${COHORT_WARNINGS_AS_ERRORS}>:-Werror>)
target_compile_options(cohort_warnings INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")
# GCC 12 takes a literal plus a temporary string for a copy between overlapping ranges.
target_compile_options(cohort_warnings INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>")
# The sorts of GCC 12's library call what it has marked as deprecated, which Clang from 17 on says wherever one is used.
target_compile_options(cohort_warnings INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>")
