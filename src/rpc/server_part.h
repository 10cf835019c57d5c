// The inside of a Server: its methods, the calls that wait, and the threads that run them. Any thread may
// call.
//
// The threads share an endpoint. One of those that are free polls it, and runs what arrives itself, so that
// no other thread need be woken up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <cohort/remote/task_place.h>
#include <cohort/rpc/server.h>

#include "remote/shared_endpoint.h"

namespace cohort::rpc {

class ServerPart final : private remote::Handler {
 public:
  using Run = std::function<void(Decoder& arguments, Encoder& result)>;

  ServerPart(remote::TaskPlace place, const ServerOptions& options);
  ~ServerPart() override;
  ServerPart(const ServerPart&) = delete;
  ServerPart& operator=(const ServerPart&) = delete;

  /// As Server's functions of these names.
  void add(Method method, Run run);
  [[nodiscard]] std::vector<Method> methods() const;
  void start();
  void stop() noexcept;
  void join();

 private:
  enum class Phase : std::uint8_t { kRegistering, kRunning, kStopped };

  struct Registered {
    std::string signature;
    std::uint64_t fingerprint;
    Run run;
  };

  /// A call that was not begun.
  struct Call {
    remote::Peer* client;
    std::uint64_t number;
    const Registered* method;
    std::vector<std::byte> arguments;
  };

  void on_connected(remote::Peer& peer) override { clients_.insert(&peer); }
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  void take_call(remote::Peer& client, const remote::Message& message);
  void run_calls();
  [[nodiscard]] std::optional<Call> next_call();
  void run(Call call);
  void end();

  template <class Predicate>
  void drop_calls(Predicate predicate) {
    std::erase_if(calls_, predicate);
    waiting_calls_.store(calls_.size());
  }

  remote::TaskPlace place_;
  ServerOptions options_;
  mutable std::mutex mutex_;  ///< of what follows, up to the threads
  Phase phase_ = Phase::kRegistering;
  std::map<std::string, Registered, std::less<>> methods_;  ///< does not change after the start
  std::unique_ptr<remote::SharedEndpoint> shared_;          ///< does not change while a thread runs
  std::vector<std::thread> threads_;

  std::atomic<bool> stopping_{false};
  std::atomic<int> threads_left_{0};
  std::atomic<bool> over_{false};  ///< nothing runs any more, and the connections are closed
  std::atomic<std::uint64_t> incarnation_{0};
  std::atomic<std::size_t> waiting_calls_{0};

  // Of the thread that uses the endpoint.
  std::deque<Call> calls_;
  std::set<remote::Peer*> clients_;
};

}  // namespace cohort::rpc
