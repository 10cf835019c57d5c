// Tasks for tests of endpoints: what they are told is kept, and one of another process does what it is told.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "cluster/sockets.h"

namespace cohort::remote {

/// How two tasks of a test reach each other.
enum class Way { kNode, kNetwork };

/// Instantiates a suite for both ways.
#define COHORT_INSTANTIATE_WAYS(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Ways, Suite, ::testing::Values(Way::kNode, Way::kNetwork), \
                           [](const auto& way) { return way.param == Way::kNode ? "Node" : "Network"; })

/// Options that keep everything on this machine: the listeners are on abstract names and on loopback.
[[nodiscard]] EndpointOptions options_of(const ClusterTask& task, Way way);

/// A TCP listener on loopback.
[[nodiscard]] watch::Fd listen_on_loopback();

/// Keeps what an endpoint tells its handler.
struct Recorder : Handler {
  struct Received {
    Peer* peer;
    std::uint16_t kind;
    std::uint64_t number;
    std::string body;
  };
  void on_connected(Peer& peer) override { connected.push_back(&peer); }
  void on_message(Peer& peer, const Message& message) override;
  void on_lost(Peer& peer, const Error& error) override;
  std::span<std::byte> destination(Peer& peer, std::uint16_t kind, std::uint64_t number,
                                   std::span<const std::byte> head, std::size_t large_bytes) override;

  std::vector<Peer*> connected;
  std::vector<Received> received;
  std::vector<Peer*> lost;
  std::vector<std::string> errors;
  std::function<void(Peer&, const Message&)> then;  ///< called after a message was kept
  std::function<std::span<std::byte>(std::span<const std::byte> head, std::size_t bytes)> place;
};

/// Two tasks of one process, connected.
class Pair {
 public:
  explicit Pair(Way way);

  /// Polls both in turn until the condition holds; false after ten seconds.
  [[nodiscard]] bool poll_until(const std::function<bool()>& condition);

  Recorder a_record;
  Recorder b_record;
  Endpoint a;
  Endpoint b;
  Peer* b_at_a = nullptr;  ///< how a sees b
  Peer* a_at_b = nullptr;
};

[[nodiscard]] std::span<const std::byte> bytes_of(std::string_view text);

/// Polls `endpoint` on a thread of its own while `body` runs, for a minute at most.
void poll_meanwhile(Endpoint& endpoint, const std::function<void()>& body);

/// What a TaskProcess does with a message, by its kind.
enum Order : std::uint16_t {
  kEcho = 1,     ///< sends it back
  kExit = 2,     ///< sends its number back and exits without closing anything by itself
  kFork = 3,     ///< forks a child that keeps the sockets and sleeps; sends the child's number back
  kCompute = 4,  ///< is busy for `number` milliseconds, and sends it back
  kSay = 5,      ///< sends `number` messages
};

/// A task in a process of its own, which does as it is ordered, and ends with this object at the latest.
class TaskProcess {
 public:
  /// Its listeners are this process's, so another TaskProcess can take its place at the same address.
  TaskProcess(Address address, int local_listener, int network_listener, EndpointOptions options);
  ~TaskProcess();
  TaskProcess(const TaskProcess&) = delete;
  TaskProcess& operator=(const TaskProcess&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] const Address& address() const noexcept { return address_; }
  void send_signal(int signal) const;

 private:
  Address address_;
  pid_t pid_;
};

/// The listeners of a task, which outlive its processes.
class Place {
 public:
  Place(ClusterTask task, Way way);

  [[nodiscard]] const Address& address() const noexcept { return address_; }

  /// What its processes run with, but for the listeners.
  [[nodiscard]] EndpointOptions options() const;
  [[nodiscard]] int local_listener() const noexcept { return local_.get(); }
  [[nodiscard]] int network_listener() const noexcept { return network_.get(); }

  [[nodiscard]] TaskProcess start() const {
    return TaskProcess(address_, local_listener(), network_listener(), options());
  }

 private:
  Way way_;
  Address address_;
  watch::Fd local_;
  watch::Fd network_;
};

/// Short enough for a test that waits for a silence, and long enough for a machine that is busy.
[[nodiscard]] EndpointOptions with_short_silence(EndpointOptions options);

}  // namespace cohort::remote
