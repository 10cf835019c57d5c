// NCCL's library, which a process opens when it first needs it: what COHORT_NCCL_LIBRARY names;
// or else a copy that the program has loaded already, the one beside the header that Cohort was built
// with, or the system's. One that is older than that header is refused.
#pragma once

#include <string>

namespace cohort::nccl {

struct LibraryInfo {
  std::string path;
  std::string version;         ///< for example `2.28.9`
  std::string header_version;  ///< what Cohort was built with
};

/// Any thread may ask. @throws Unavailable, listing what was tried and why each failed.
[[nodiscard]] LibraryInfo library();

}  // namespace cohort::nccl
