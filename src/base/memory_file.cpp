#include "memory_file.h"

#include <sys/mman.h>

#include <cerrno>

// Newer than some systems' headers.
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace cohort {

int make_memory_file(const char* name) noexcept {
  const int file = ::memfd_create(name, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  // Before Linux 6.3.
  return file < 0 && errno == EINVAL ? ::memfd_create(name, MFD_CLOEXEC) : file;
}

}  // namespace cohort
