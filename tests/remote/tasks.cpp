#include "tasks.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "cluster/sockets.h"

namespace cohort::remote {
namespace {

using namespace std::chrono_literals;

/// Does what it is ordered.
struct Servant : Handler {
  void on_connected(Peer& /*peer*/) override {}
  void on_lost(Peer& /*peer*/, const Error& /*error*/) override {}
  void on_message(Peer& peer, const Message& message) override {
    switch (message.kind) {
      case kEcho: return peer.send(kEcho, message.number, message.body);
      case kExit: peer.send(kExit, message.number); ::_exit(0);
      case kFork: {
        const pid_t child = ::fork();
        if (child == 0) {
          while (true) ::pause();
        }
        return peer.send(kFork, static_cast<std::uint64_t>(child));
      }
      case kCompute: {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(message.number);
        while (std::chrono::steady_clock::now() < end) ::sched_yield();
        return peer.send(kCompute, message.number);
      }
      case kSay:
        for (std::uint64_t i = 0; i < message.number; ++i) peer.send(kSay, i, message.body);
        return;
      default: return;
    }
  }
};

[[noreturn]] void serve(const EndpointOptions& options) {
  Servant servant;
  Endpoint endpoint(options, servant);
  endpoint.wait_until([] { return false; });
  ::_exit(0);
}

int copy_of(int descriptor) { return descriptor < 0 ? -1 : ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

pid_t start_process(const EndpointOptions& options) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    serve(options);
  } catch (const std::exception& e) {
    static_cast<void>(!::write(STDERR_FILENO, e.what(), std::char_traits<char>::length(e.what())));
    ::_exit(1);
  }
}

}  // namespace

watch::Fd listen_on_loopback() {
  watch::Fd listener = watch::listen_loopback();
  if (!listener) throw std::runtime_error("no listener on loopback");
  ::fcntl(listener.get(), F_SETFL, 0);
  return listener;
}

EndpointOptions options_of(const ClusterTask& task, Way way) {
  EndpointOptions options;
  options.task = task;
  options.secret = "a secret of sixteen bytes or more";
  options.network_listener = copy_of(listen_on_loopback().get());
  options.over_network_only = way == Way::kNetwork;
  return options;
}

EndpointOptions with_short_silence(EndpointOptions options) {
  options.heartbeat = 50ms;
  options.silence = 1000ms;
  return options;
}

void Recorder::on_message(Peer& peer, const Message& message) {
  received.push_back({&peer,
                      message.kind,
                      message.number,
                      {reinterpret_cast<const char*>(message.body.data()), message.body.size()}});
  if (then) then(peer, message);
}

void Recorder::on_lost(Peer& peer, const Error& error) {
  lost.push_back(&peer);
  errors.emplace_back(error.what());
}

std::span<std::byte> Recorder::destination(Peer& /*peer*/, std::uint16_t /*kind*/, std::uint64_t /*number*/,
                                           std::span<const std::byte> head, std::size_t large_bytes) {
  return place ? place(head, large_bytes) : std::span<std::byte>();
}

Pair::Pair(Way way) : a(options_of({"worker", 3}, way), a_record), b(options_of({"ps", 1}, way), b_record) {
  std::thread connecting([&] { b_at_a = &a.connect(b.address(), Deadline::after(10s)); });
  const bool accepted = b.wait_until([&] { return !b_record.connected.empty(); }, Deadline::after(10s));
  connecting.join();
  if (!accepted) throw std::runtime_error("nobody connected");
  a_at_b = b_record.connected.front();
}

bool Pair::poll_until(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(10s);
  while (!condition()) {
    if (deadline.expired()) return false;
    a.poll();
    b.poll();
    ::sched_yield();
  }
  return true;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void poll_meanwhile(Endpoint& endpoint, const std::function<void()>& body) {
  std::atomic<bool> done{false};
  std::thread polling([&] { endpoint.wait_until([&] { return done.load(); }, Deadline::after(60s)); });
  body();
  done = true;
  endpoint.wake();
  polling.join();
}

TaskProcess::TaskProcess(Address address, int local_listener, int network_listener, EndpointOptions options)
    : address_(std::move(address)) {
  options.local_listener = local_listener;
  options.network_listener = network_listener;
  pid_ = start_process(options);
}

TaskProcess::~TaskProcess() {
  send_signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void TaskProcess::send_signal(int signal) const { ::kill(pid_, signal); }

Place::Place(ClusterTask task, Way way) : way_(way), network_(listen_on_loopback()) {
  address_.task = std::move(task);
  address_.host = "here";
  address_.network = watch::network_addresses(network_.get());
  if (way == Way::kNetwork) return;
  local_ = watch::listen_local(watch::random_token());
  address_.local = watch::local_name(local_.get());
}

EndpointOptions Place::options() const {
  EndpointOptions options = with_short_silence(options_of(address_.task, way_));
  ::close(std::exchange(options.network_listener, -1));
  return options;
}

}  // namespace cohort::remote
