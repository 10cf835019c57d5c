// Lets the stand-in for NCCL fail. Where the machine's own library is in use, tests of faults are skipped.
#pragma once

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <cohort/nccl/library.h>

#include "../stand_in/nccl_stand_in.h"

namespace cohort::testing {

/// The stand-in's function; null for the machine's own library.
inline decltype(&nccl_stand_in_inject) find_injection() {
  void* const library = ::dlopen(nccl::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<decltype(&nccl_stand_in_inject)>(::dlsym(library, "nccl_stand_in_inject"));
}

inline void inject(int rank, NcclFault fault) { find_injection()(rank, static_cast<int>(fault)); }

}  // namespace cohort::testing
