// Lets the stand-in for NCCL fail. Where the machine's own library is in use, tests of faults are skipped.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <optional>
#include <string_view>

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

// How many pieces of memory are registered with the communicators of NCCL of this process, as the stand-in
// counts them; the machine's own library gives no count.

inline bool nccl_has_windows() {
  const char* const wanted = std::getenv("NCCL_WIN_ENABLE");
  return wanted == nullptr || std::string_view(wanted) != "0";
}

/// As symmetric windows, or without them where the environment says NCCL_WIN_ENABLE=0.
inline void expect_registered(int pieces) {
  void* const library = ::dlopen(nccl::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto count = [&](const char* function) {
    return reinterpret_cast<decltype(&nccl_stand_in_windows)>(::dlsym(library, function));
  };
  if (count("nccl_stand_in_windows") == nullptr) return;
  EXPECT_EQ(count("nccl_stand_in_windows")(), nccl_has_windows() ? pieces : 0);
  EXPECT_EQ(count("nccl_stand_in_registrations")(), nccl_has_windows() ? 0 : pieces);
}

}  // namespace cohort::testing
