#include "store_steps.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/store_layout.h"
#include "server/store_mapping.h"

namespace cohort::server {
namespace {

constexpr int kMayNotBeTraced = 2;

/// The blocks of a small store.
constexpr std::uint64_t kMostBlocks = 8 * kPage;

struct Part {
  std::uint64_t begin;
  std::uint64_t bytes;
};

/// What a small store uses: the table and the list of changes are mostly holes.
std::vector<Part> used_parts(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw std::runtime_error("no file");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes < kBlocksBegin) return {{0, std::min(bytes, std::uint64_t{kPage})}};
  return {{0, kPage},
          {kChangesBegin, kPage},
          {kTableBegin, kPage},
          {kBlocksBegin, std::min(bytes - kBlocksBegin, kMostBlocks)}};
}

using Contents = std::vector<std::vector<std::byte>>;

Contents contents_of(int descriptor) {
  Contents contents;
  for (const Part& part : used_parts(descriptor)) {
    contents.emplace_back(part.bytes);
    if (::pread(descriptor, contents.back().data(), part.bytes, static_cast<off_t>(part.begin)) !=
        static_cast<ssize_t>(part.bytes))
      throw std::runtime_error("cannot read the file");
  }
  return contents;
}

[[noreturn]] void run_child(const std::function<void()>& prepare, const std::function<void()>& operation) {
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kMayNotBeTraced);
    prepare();
    ::raise(SIGSTOP);
    operation();
    ::raise(SIGSTOP);
    ::_exit(0);
  } catch (...) {
    ::_exit(1);
  }
}

/// Waits until the child stops or ends. The signal that stopped it; 0 when it has ended.
int wait_for_stop(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("no child");
  if (WIFSTOPPED(status)) return WSTOPSIG(status);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kMayNotBeTraced)
      << "the child failed with status " << status;
  return 0;
}

}  // namespace

watch::Fd copy_of_store_file(int descriptor) {
  watch::Fd copy = make_store_file();
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || ::ftruncate(copy.get(), status.st_size) != 0)
    throw std::runtime_error("cannot make a copy");
  const std::vector<Part> parts = used_parts(descriptor);
  const Contents contents = contents_of(descriptor);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (::pwrite(copy.get(), contents[i].data(), contents[i].size(), static_cast<off_t>(parts[i].begin)) !=
        static_cast<ssize_t>(contents[i].size()))
      throw std::runtime_error("cannot write the copy");
  }
  return copy;
}

int for_each_state(int descriptor, const std::function<void()>& prepare,
                   const std::function<void()>& operation, const std::function<void(int copy)>& on_state) {
  const pid_t child = ::fork();
  if (child == 0) run_child(prepare, operation);
  if (wait_for_stop(child) != SIGSTOP) return 0;
  int states = 0;
  Contents before;
  for (int signal = SIGTRAP; signal == SIGTRAP; signal = wait_for_stop(child)) {
    if (Contents now = contents_of(descriptor); now != before) {
      before = std::move(now);
      on_state(copy_of_store_file(descriptor).get());
      ++states;
    }
    if (::testing::Test::HasFailure()) break;
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return states;
}

}  // namespace cohort::server
