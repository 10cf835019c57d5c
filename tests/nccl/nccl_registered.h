// How many pieces of memory are registered with the communicators of NCCL of this process, as the stand-in
// counts them; the machine's own library gives no count.
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

#include <dlfcn.h>

#include <gtest/gtest.h>

#include <cohort/nccl/library.h>

#include "../stand_in/nccl_stand_in.h"

namespace cohort::testing {

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
