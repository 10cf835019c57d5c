// Writing fails as on a full disk, without one.
#pragma once

#include <sys/resource.h>

#include <csignal>

namespace cohort::testing {

/// While it lives, no file of this process grows beyond so many bytes: writing more is the error EFBIG.
class LargestFile {
 public:
  explicit LargestFile(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LargestFile() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  LargestFile(const LargestFile&) = delete;
  LargestFile& operator=(const LargestFile&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace cohort::testing
