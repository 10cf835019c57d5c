#include "process_memory.h"

#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/uio.h>

#include <cerrno>
#include <fstream>

namespace cohort {

const std::uint64_t& memory_nonce() {
  static const std::uint64_t nonce = [] {
    std::uint64_t value = 0;
    if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) value = 0;
    return value;
  }();
  return nonce;
}

bool memory_can_be_read(pid_t pid, std::uint64_t address, std::uint64_t nonce) {
  std::uint64_t value = 0;
  return read_process_memory(pid, address, std::as_writable_bytes(std::span(&value, 1))) && value == nonce;
}

bool read_process_memory(pid_t pid, std::uint64_t address, std::span<std::byte> destination) {
  // It may copy less than asked for; then it goes on where it stopped.
  while (!destination.empty()) {
    const iovec here{destination.data(), destination.size()};
    const iovec there{reinterpret_cast<void*>(address), destination.size()};
    const ssize_t copied = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (copied == 0) errno = EFAULT;
    if (copied <= 0) return false;
    address += static_cast<std::uint64_t>(copied);
    destination = destination.subspan(static_cast<std::size_t>(copied));
  }
  return true;
}

void permit_neighbours_to_read() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  if (file >> scope && scope == 1) static_cast<void>(::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0));
}

}  // namespace cohort
