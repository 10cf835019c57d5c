#include "parameters/server_job.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/coordinator/serve.h>
#include <cohort/resolvers/task_cluster_resolver.h>

#include "output.h"

namespace cohort::bench {
namespace {

int count(const remote::TaskPlace& place, std::string_view job) {
  return static_cast<int>(std::ranges::count_if(
      place.addresses, [&](const remote::Address& address) { return address.task.type == job; }));
}

}  // namespace

bool has_tasks() { return config().task_descriptor() >= 0; }

bool is_serving_task() { return has_tasks() && TaskClusterResolver().place().task.type != "chief"; }

int serve_as_task() { return serve(ParameterServerStrategy(TaskClusterResolver().place())); }

JobSize size_of_tasks() {
  const remote::TaskPlace place = TaskClusterResolver().place();
  return {count(place, "worker"), count(place, "ps")};
}

ServerJob::ServerJob(const JobSize& size) : size_(size) {
  if (has_tasks()) {
    size_ = size_of_tasks();
    strategy_.emplace(TaskClusterResolver().place());
  } else {
    processes_.emplace(size.workers, size.servers);
    strategy_.emplace(processes_->chief());
  }
}

ServerJob::~ServerJob() {
  try {
    static_cast<void>(coordinator());  // which tells the tasks, at its end, that the job is over
  } catch (const Error& error) {
    complain(error.what());
  }
}

const std::string& ServerJob::host() const {
  return remote::address_of(strategy_->place(), strategy_->task()).host;
}

std::vector<std::string> ServerJob::hosts_of_servers() const {
  std::vector<std::string> hosts;
  for (const remote::Address& address : strategy_->place().addresses)
    if (address.task.type == "ps") hosts.push_back(address.host);
  return hosts;
}

const ClusterCoordinator& ServerJob::coordinator() {
  if (!coordinator_) coordinator_.emplace(*strategy_);
  return *coordinator_;
}

namespace {

constexpr int kSecondsToConnect = 10;

/// How long a host may be silent within an exchange. TCP itself would wait for it for ever.
constexpr timeval kLongestSilence{.tv_sec = 60, .tv_usec = 0};

/// What the worker says first.
struct Hello {
  std::array<char, 65> host{};
};

/// What it is asked to do then: to receive so many bytes, and to send so many.
struct Exchange {
  std::uint64_t to_receive = 0;
  std::uint64_t to_send = 0;
};

/// Moves all of `bytes` by `move`, which is ::send or ::recv; false at the connection's end.
template <class Move, class Byte>
bool move_all(Move move, int socket, std::span<Byte> bytes, int flags) {
  while (!bytes.empty()) {
    const ssize_t moved = move(socket, bytes.data(), bytes.size(), flags);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(moved));
  }
  return true;
}
bool send_all(const watch::Fd& socket, std::span<const std::byte> bytes) {
  return move_all(::send, socket.get(), bytes, MSG_NOSIGNAL);
}
bool receive_all(const watch::Fd& socket, std::span<std::byte> bytes) {
  return move_all(::recv, socket.get(), bytes, MSG_WAITALL);
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

void send_at_once(const watch::Fd& socket) {
  const int on = 1;
  static_cast<void>(::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
}

watch::Fd connect_to(const std::string& text) {
  const std::optional<watch::SocketAddress> address = watch::network_address(text);
  if (!address) return {};
  watch::Fd socket(::socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->get(), address->bytes) != 0) return {};
  send_at_once(socket);
  return socket;
}

/// The worker's end: until the chief closes the connection.
void answer(const std::vector<std::string>& addresses_of_chief) {
  watch::Fd socket;
  for (const std::string& address : addresses_of_chief) {
    if (!socket) socket = connect_to(address);
  }
  if (!socket) throw Unavailable("the chief cannot be reached for a measurement of the wire");
  Hello hello;
  ::gethostname(hello.host.data(), hello.host.size() - 1);
  Exchange exchange;
  std::vector<std::byte> buffer;
  bool goes_on = send_all(socket, bytes_of(hello));
  while (goes_on && receive_all(socket, bytes_of(exchange))) {
    buffer.resize(std::max(exchange.to_receive, exchange.to_send));
    goes_on = receive_all(socket, std::span(buffer).first(exchange.to_receive)) &&
              send_all(socket, std::span(buffer).first(exchange.to_send));
  }
}

watch::Fd accept_one(const watch::Fd& listener) {
  pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, kSecondsToConnect * 1000) != 1) return {};
  watch::Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket) {
    send_at_once(socket);
    for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO})
      static_cast<void>(
          ::setsockopt(socket.get(), SOL_SOCKET, direction, &kLongestSilence, sizeof kLongestSilence));
  }
  return socket;
}

}  // namespace

Wire::Wire(ServerJob& job, const std::string& host) : host_(host) {
  const watch::Fd listener = watch::listen_network();
  if (!listener) throw Unavailable("cannot listen for a measurement of the wire: {}", std::strerror(errno));
  const std::vector<std::string> addresses = watch::network_addresses(listener.get());
  // A worker has one call at a time, so each of them takes one.
  const int workers = job.size().workers;
  for (int i = 0; i < workers; ++i) job.coordinator().schedule<answer>(addresses);
  for (int i = 0; i < workers; ++i) {
    watch::Fd socket = accept_one(listener);
    Hello hello;
    if (socket && receive_all(socket, bytes_of(hello)) && hello.host.data() == host)
      connection_ = std::move(socket);
  }
  if (!connection_) {
    throw Unavailable("no worker of {} is on host {}, whose wire is to be measured: start more of them",
                      workers, host);
  }
}

void Wire::exchange(std::size_t sent, std::size_t received) {
  Exchange exchange{.to_receive = sent, .to_send = received};
  buffer_.resize(std::max({buffer_.size(), sent, received}));
  if (!send_all(connection_, bytes_of(exchange)) || !send_all(connection_, std::span(buffer_).first(sent)) ||
      !receive_all(connection_, std::span(buffer_).first(received))) {
    throw Unavailable("the connection to {} that measures the wire is lost, or silent: {}", host_,
                      std::strerror(errno));
  }
}

}  // namespace cohort::bench
