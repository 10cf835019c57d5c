// Sockets, for the processes of a job that look for each other beside MPI: descriptors with an owner,
// listeners, the addresses at which others reach them, and who is at the other end.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::watch {

/// A file descriptor with an owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// From here on somebody else's.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A socket address of any family, with its length.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Of a socket in the abstract namespace: nothing is left in a file system. A name that is too long is cut
/// off.
[[nodiscard]] SocketAddress local_address(const std::string& name);

/// Of a numeric address; nothing when `host` is none.
[[nodiscard]] std::optional<SocketAddress> network_address(const std::string& host, std::uint16_t port);

/// The number of the process at the other end of a connected local socket, 0 where it is in a PID namespace
/// that this process cannot see. Nothing when it is not a process of this user.
///
/// Every user of the machine can read the names of local sockets, connect to them, and take a name that has
/// become free. So both ends look who is there before they send or believe anything.
[[nodiscard]] std::optional<pid_t> peer_of_this_user(int socket);

/// 128 random bits as text.
[[nodiscard]] std::string random_token();

/// Both return no descriptor where the system refuses.
[[nodiscard]] Fd listen_local(const std::string& name);
[[nodiscard]] Fd listen_network(std::uint16_t& port);

/// The addresses of this host by which others may reach it; loopback only if there is nothing else.
[[nodiscard]] std::vector<std::string> own_hosts();

}  // namespace cohort::watch
