// The one copy of NCCL that this process uses. Opened on first use, and never closed: it has threads.
#pragma once

#include <string>

#include "functions.h"

namespace cohort::nccl {

struct OpenLibrary {
  Functions functions;
  std::string path;
  int version = 0;  ///< as NCCL_VERSION_CODE
};

/// @throws Unavailable, listing what was tried and why each failed.
[[nodiscard]] const OpenLibrary& open_library();

/// For example `2.28.9`.
[[nodiscard]] std::string version_text(int version_code);

}  // namespace cohort::nccl
