#include "send_queues.h"

#include <dirent.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdlib>
#include <memory>

namespace cohort {
namespace {

constexpr std::chrono::seconds kBetweenSearches{1};

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool reaches_another_host(int descriptor) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return false;
  return (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) && !is_loopback(peer);
}

}  // namespace

std::uint64_t SendQueues::bytes() {
  const auto now = std::chrono::steady_clock::now();
  if (connections_.empty() || now - found_at_ >= kBetweenSearches) {
    find_connections();
    found_at_ = now;
  }
  std::uint64_t bytes = 0;
  for (const int connection : connections_) {
    int queued = 0;
    if (::ioctl(connection, SIOCOUTQ, &queued) == 0 && queued > 0)
      bytes += static_cast<std::uint64_t>(queued);
  }
  return bytes;
}

void SendQueues::find_connections() {
  connections_.clear();
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (folder == nullptr) return;
  while (const dirent* const entry = ::readdir(folder.get())) {
    char* end = nullptr;
    const long descriptor = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == '\0' && reaches_another_host(static_cast<int>(descriptor)))
      connections_.push_back(static_cast<int>(descriptor));
  }
}

}  // namespace cohort
