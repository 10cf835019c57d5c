#include "cluster/descriptor_exchange.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <cohort/base/error.h>

#include "fd.h"
#include "watch_address.h"

namespace cohort {
namespace {

using watch::Fd;

constexpr std::size_t kTokenBytes = 32;

/// Sent with a descriptor: the sender's rank, and the receiver's key as proof of the right job.
struct Greeting {
  int rank = -1;
  std::array<char, kTokenBytes> key{};
};

struct AbstractName {
  explicit AbstractName(std::string_view token) {
    address.sun_family = AF_UNIX;
    // The zero byte in front keeps the name out of the file system: nothing is left behind.
    std::memcpy(address.sun_path + 1, token.data(), token.size());
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + token.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  socklen_t bytes = 0;
};

Fd make_socket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

Fd listen_on(const std::string& token) {
  Fd socket = make_socket();
  const AbstractName name(token);
  if (!socket || ::bind(socket.get(), name.get(), name.bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return {};
  }
  return socket;
}

/// One message with room for one descriptor.
struct Packet {
  explicit Packet(Greeting& greeting) : part{&greeting, sizeof greeting} {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  iovec part;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

void send_to(const std::string& token, Greeting greeting, int descriptor) {
  const Fd socket = make_socket();
  const AbstractName name(token);
  // A peer on another node or in another network namespace has no such name here; its descriptor will not
  // arrive.
  if (!socket || ::connect(socket.get(), name.get(), name.bytes) != 0) return;
  Packet packet(greeting);
  cmsghdr* rights = CMSG_FIRSTHDR(&packet.header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
  static_cast<void>(::sendmsg(socket.get(), &packet.header, MSG_NOSIGNAL));
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == ::geteuid();
}

/// The sender of the descriptor in the message, if it is a message of this job.
struct Received {
  int rank;
  Fd descriptor;
};

std::optional<Received> receive(int socket, const std::string& key) {
  Greeting greeting;
  Packet packet(greeting);
  const ssize_t bytes = ::recvmsg(socket, &packet.header, MSG_CMSG_CLOEXEC);
  Fd descriptor;
  for (cmsghdr* rights = CMSG_FIRSTHDR(&packet.header); bytes > 0 && rights != nullptr;
       rights = CMSG_NXTHDR(&packet.header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(rights), sizeof received);
    descriptor = Fd(received);
  }
  const bool genuine = bytes == static_cast<ssize_t>(sizeof greeting) && descriptor &&
                       std::string_view(greeting.key.data(), greeting.key.size()) == key;
  if (!genuine) return std::nullopt;
  return Received{greeting.rank, std::move(descriptor)};
}

/// Waits until one of `polled` is readable, or the limit has passed.
bool wait_until_readable(std::vector<pollfd>& polled, std::chrono::steady_clock::time_point end) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    if (::poll(polled.data(), polled.size(), static_cast<int>(left)) >= 0) return true;
    if (errno != EINTR) return false;  // a signal of the program's own is no reason to give up peers
  }
}

/// Accepts connections and takes one message from each, until the descriptors of all of `missing` have
/// arrived.
void receive_all(const Fd& listener, const std::string& key, std::chrono::milliseconds limit,
                 std::vector<int>& missing, const std::function<void(int, int)>& received) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::vector<Fd> connections;
  while (!missing.empty()) {
    std::vector<pollfd> polled{{listener.get(), POLLIN, 0}};
    for (const Fd& connection : connections) polled.push_back({connection.get(), POLLIN, 0});
    if (!wait_until_readable(polled, end)) return;
    for (std::size_t i = connections.size(); i-- > 0;) {
      if (polled[i + 1].revents == 0) continue;
      if (std::optional<Received> one = receive(connections[i].get(), key)) {
        const auto expected = std::find(missing.begin(), missing.end(), one->rank);
        if (expected != missing.end()) {
          received(one->rank, one->descriptor.get());
          missing.erase(expected);
        }
      }
      connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (polled[0].revents == 0) continue;
    while (Fd connection{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)}) {
      // Every user of the machine can see abstract names.
      if (same_user(connection.get())) connections.push_back(std::move(connection));
    }
  }
}

}  // namespace

std::vector<int> exchange_descriptors(const DescriptorExchangeOptions& options, int descriptor,
                                      const std::function<void(int, int)>& received) {
  const std::string name = watch::random_token();
  const std::string key = watch::random_token();
  COHORT_CHECK(name.size() == kTokenBytes && key.size() == kTokenBytes);
  const Fd listener = listen_on(name);
  const std::vector<std::string> blobs = options.exchange(listener && descriptor >= 0 ? name + key : "");

  std::vector<int> missing = options.peers;
  for (const int peer : options.peers) {
    const std::string& blob = blobs[static_cast<std::size_t>(peer)];
    if (blob.empty() || descriptor < 0) continue;
    Greeting greeting{options.rank, {}};
    std::copy_n(blob.begin() + kTokenBytes, kTokenBytes, greeting.key.begin());
    send_to(blob.substr(0, kTokenBytes), greeting, descriptor);
  }
  // A peer that could not listen does not send either, so it is not waited for.
  const auto cannot_send = [&](int peer) { return blobs[static_cast<std::size_t>(peer)].empty(); };
  std::vector<int> silent;
  std::copy_if(missing.begin(), missing.end(), std::back_inserter(silent), cannot_send);
  std::erase_if(missing, cannot_send);
  // Nobody sends to one that has nothing to send.
  if (listener && descriptor >= 0) receive_all(listener, key, options.limit, missing, received);
  silent.insert(silent.end(), missing.begin(), missing.end());
  return silent;
}

}  // namespace cohort
