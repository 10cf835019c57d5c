// Lets the stand-in for NCCL fail. Where the machine's own library is in use, tests of faults are skipped.
#pragma once

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <cohort/nccl/library.h>

#include "../stand_in/nccl_stand_in.h"

namespace cohort::testing {

/// A function of the stand-in; null for the machine's own library.
template <class Function>
Function* find_in_stand_in(const char* name) {
  void* const library = ::dlopen(nccl::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

inline auto find_injection() {
  return find_in_stand_in<decltype(nccl_stand_in_inject)>("nccl_stand_in_inject");
}

/// The end of a communicator waits for those of this process, too, while there is one of these.
class NcclWaitsForThreads {
 public:
  NcclWaitsForThreads() { tell(true); }
  ~NcclWaitsForThreads() { tell(false); }
  NcclWaitsForThreads(const NcclWaitsForThreads&) = delete;
  NcclWaitsForThreads& operator=(const NcclWaitsForThreads&) = delete;

 private:
  static void tell(bool wanted) {
    find_in_stand_in<decltype(nccl_stand_in_wait_for_threads)>("nccl_stand_in_wait_for_threads")(wanted);
  }
};

inline void inject(int rank, NcclFault fault) { find_injection()(rank, static_cast<int>(fault)); }

}  // namespace cohort::testing
