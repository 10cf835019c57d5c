// The connections of this process to other workers of its Session, over which they tell each other what they
// must know while they have no communicator. Workers of a node talk through shared memory, others over TCP.
// Letters are for a group, by its name, and wait until the group takes them. Any thread may call.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/remote/endpoint.h>

#include "remote/shared_endpoint.h"

namespace cohort::rendezvous {

struct Letter {
  enum class Kind : std::uint16_t {
    kSay = 1,    ///< to the first of a group: what a member contributes to a round
    kAll,        ///< from the first: what all have contributed
    kImpatient,  ///< to the first: the member's deadline has passed
    kError,      ///< the sender gives up, and so should the receiver
  };
  Kind kind = Kind::kSay;
  std::uint64_t round = 0;
  std::string text = {};
  int from = 0;  ///< rank in the session
};

class Links final : private remote::Handler {
 public:
  /// Of the worker `rank` of a session whose workers know `secret`.
  Links(int rank, std::string secret);

  [[nodiscard]] const std::string& secret() const noexcept { return secret_; }
  [[nodiscard]] const remote::Address& address() { return endpoint_.endpoint().address(); }

  /// Connects to a worker unless there is a connection already; calls `between` between its attempts, which
  /// may throw. @throws DeadlineExceeded, with what keeps the worker from answering; InvalidArgument when
  /// something else answers.
  void connect(const remote::Address& address, Deadline deadline, const std::function<void()>& between = {});

  /// To a worker that is connected; one that is not gets nothing.
  void send(int rank, std::string_view group, const Letter& letter);

  /// The next letter for a group, of any worker.
  [[nodiscard]] std::optional<Letter> take(const std::string& group);

  /// Looks for letters that have arrived.
  void poll() { endpoint_.poll(); }

  /// Waits until there is a letter for the group, a worker is lost, or the deadline has passed.
  void wait(const std::string& group, Deadline deadline);

  /// Why there is no connection to a worker any more; nothing while there is one, never was, or may come
  /// again at once.
  [[nodiscard]] std::optional<std::string> loss(int rank) const;

  /// For example `worker 2 (host n1, pid 4711)`, or `worker 2` of one that was never connected.
  [[nodiscard]] std::string name(int rank) const;

  /// The names of all processes that have connected as worker `rank`.
  [[nodiscard]] std::vector<std::string> namesakes(int rank) const;

 private:
  struct Worker {
    std::vector<remote::Peer*> peers;  ///< that are not lost
    std::vector<std::string> names;
    std::string loss;
    Deadline comes_back = Deadline::never();  ///< after its loss: until then it may
  };

  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  const std::string secret_;
  mutable std::mutex mutex_;  ///< taken by the thread that polls the endpoint as well
  std::map<int, Worker> workers_;
  std::map<std::string, std::deque<Letter>, std::less<>> letters_;  ///< by group
  std::uint64_t losses_ = 0;
  remote::SharedEndpoint endpoint_;  ///< last, so that it ends first
};

}  // namespace cohort::rendezvous
