// Sockets, for the processes of a job that look for each other beside MPI: descriptors with an owner,
// addresses, how a process listens, connects, and accepts only whom it should, descriptors that travel, and
// waits.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

enum class Reach { kNode, kNetwork };

/// A socket address of any family, with its length.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  [[nodiscard]] Reach reach() const { return storage.ss_family == AF_UNIX ? Reach::kNode : Reach::kNetwork; }
};

/// Of a socket in the abstract namespace: nothing is left in a file system. Nothing when the name is empty or
/// does not fit.
[[nodiscard]] std::optional<SocketAddress> local_address(std::string_view name);

/// `127.0.0.1:4000` or `[::1]:4000`; nothing when the text is neither.
[[nodiscard]] std::optional<SocketAddress> network_address(const std::string& text);

/// 128 random bits as text.
[[nodiscard]] std::string random_token();

// None of these sockets blocks, and all end with this program's image. Over the network they send at once.

/// No descriptor, and `errno`, where the system refuses. `type` is SOCK_STREAM or SOCK_SEQPACKET.
[[nodiscard]] Fd listen_local(std::string_view name, int type = SOCK_STREAM);
/// At a port that the system chooses, of all interfaces or of the one that other hosts do not reach.
[[nodiscard]] Fd listen_network();
[[nodiscard]] Fd listen_loopback();

/// Prepares a listener that another process may have made.
/// @throws InvalidArgument when `listener` is none of `reach`.
[[nodiscard]] Fd take_over(int listener, Reach reach);

/// Where others reach a listener: at all addresses of this host, unless it is bound to one; loopback only if
/// there is nothing else.
[[nodiscard]] std::vector<std::string> network_addresses(int listener);
[[nodiscard]] std::string local_name(int listener);

/// The number of the process at the other end of a connected local socket, 0 where it is in a PID namespace
/// that this process cannot see. Nothing when it is not a process of this user.
///
/// Every user of the machine can read the names of local sockets, connect to them, and take a name that has
/// become free. So both ends look who is there before they send or believe anything; `connect_to` and
/// `accept_all` do.
[[nodiscard]] std::optional<pid_t> peer_of_this_user(int socket);

/// No descriptor, and `errno`, when it fails: EAGAIN where too many wait at a local listener already, EPERM
/// where that is of another user. Over the network it may still fail: `connect_error` says so.
[[nodiscard]] Fd connect_to(const SocketAddress& address, int type = SOCK_STREAM);

/// Of a socket that connects: 0 once it has, nothing before; otherwise what has gone wrong.
[[nodiscard]] std::optional<int> connect_error(int socket);

/// Who has connected to a listener.
struct Arrivals {
  std::vector<Fd> sockets;
  /// The system has no room for one more, who stays in the queue: to wait for the listener would not be to
  /// wait.
  bool out_of_room = false;
};

/// Without waiting, and `most` at a time, so that whoever connects without end keeps no thread busy. Of those
/// who come to a local listener only processes of this user.
[[nodiscard]] Arrivals accept_all(const Fd& listener, std::size_t most = 64);

/// What has come with bytes over a local socket.
struct Attached {
  std::vector<Fd> descriptors;
  pid_t sender = 0;  ///< as this process sees it, where SO_PASSCRED is set; 0: it cannot
};
inline constexpr std::size_t kMostDescriptors = 4;

/// As ::send and ::recv, at once or not at all, with at most kMostDescriptors descriptors.
[[nodiscard]] ssize_t send_with(int socket, std::string_view bytes, std::span<const int> descriptors);
[[nodiscard]] ssize_t receive_with(int socket, std::span<char> buffer, Attached& attached);

/// Before a TCP connection is closed: waits until the other end has taken what was sent, or has closed it, but
/// no longer than until `limit`. A socket that is closed while there is something to be read takes back what
/// it has sent, so all that arrives meanwhile is read.
void finish_sending(const Fd& socket, std::chrono::steady_clock::time_point limit) noexcept;

/// For poll and epoll_wait, which wait too long rather than too short; -1, for ever, where `then` is max().
[[nodiscard]] int milliseconds_until(std::chrono::steady_clock::time_point then);

/// Waits until something of what `polled` asks for is there; false when it is not by `until`. A signal of the
/// program's own does not end the wait.
bool poll_until(std::span<pollfd> polled, std::chrono::steady_clock::time_point until);

}  // namespace cohort::watch
