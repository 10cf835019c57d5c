// What a server does so that its standby on another host has all that it has answered for. The standby first
// gets a copy of the server's memory, for which changes wait; then each request that changed something, in
// the order in which they were carried out. The answers are given once the standby has done the same.
//
// A server without a standby that is complete asks its supervisor before it changes anything, for it cannot
// tell a standby that is lost from one that is taking over:
//
//     asking  -- granted -->  alone  -- a standby follows -->  copying  -- it has all -->  paired
//       ^                       ^------ it is lost ---------------'                         |
//       '---------------------------------- it is lost -------------------------------------'
//
// One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "cluster/sockets.h"
#include "remote/supervised_task.h"
#include "server/serving/parameter_server.h"
#include "store_copy.h"

namespace cohort::server {

/// Hears what a supervisor says to this server, while the server does something else.
class SupervisorWatch {
 public:
  /// Calls `heard` for each word, on a thread of its own, until the line ends. The line outlives it.
  /// @throws Unavailable when the system refuses.
  SupervisorWatch(remote::SupervisorLine line, std::function<void(remote::SupervisorWord)> heard);
  ~SupervisorWatch();
  SupervisorWatch(const SupervisorWatch&) = delete;
  SupervisorWatch& operator=(const SupervisorWatch&) = delete;

 private:
  void listen();

  remote::SupervisorLine line_;
  std::function<void(remote::SupervisorWord)> heard_;
  watch::Fd stop_;
  std::jthread thread_;  ///< last: it uses the others
};

/// The job under which a standby connects to its server.
inline constexpr const char* kStandbyJob = "standby";

/// What a standby says when it asks to follow.
struct Following {
  std::uint32_t store_version = 0;
  std::uint32_t byte_order = 0;
};

class Replication final : public ServerOutput {
 public:
  /// Carries out a request, with this object as the server's output.
  using CarryOut = std::function<void(remote::Peer&, const remote::Message&)>;

  using Seconds = std::chrono::duration<double>;

  /// Asks the supervisor at once, which may take so long to answer. `store` and `server` outlive it; the
  /// server need not be made yet.
  Replication(const Store& store, const ParameterServer& server, remote::SupervisorLine supervisor,
              std::optional<Seconds> longest_question, CarryOut carry_out);

  /// Keeps a request that must wait, and carries it out later. False: it is the caller's.
  [[nodiscard]] bool hold(remote::Peer& peer, const remote::Message& message);

  /// @throws Aborted when the standby has taken over: this server is out of date, and must answer nobody.
  void on_standby_message(remote::Peer& standby, const remote::Message& message);

  /// Of the standby, or of somebody who waits for an answer.
  void on_lost(const remote::Peer& peer);

  /// The supervisor lets this server go on without a standby.
  void granted();

  /// @throws Unavailable when the supervisor has not answered for too long: those who wait for this server
  /// are to look for another one.
  void require_supervisor() const;

  /// Whether `go_on` has something to do: the standby can take more of the copy.
  [[nodiscard]] bool is_due() const;
  void go_on();

  /// Whether no request and no answer waits.
  [[nodiscard]] bool is_settled() const noexcept { return requests_.empty() && answers_.empty(); }

  [[nodiscard]] bool wants_values() const noexcept override { return state_ == State::kPaired; }
  void changed(MessageKind kind, std::span<const std::byte> body) override;
  void answer(remote::Peer& peer, MessageKind kind, std::uint64_t number,
              std::span<const std::byte> body) override;

 private:
  enum class State { kAsking, kAlone, kCopying, kPaired };

  struct Request {
    remote::Peer* peer;
    std::uint16_t kind;
    std::uint64_t number;
    std::vector<std::byte> body;
  };
  struct Answer {
    remote::Peer* peer;
    MessageKind kind;
    std::uint64_t number;
    std::vector<std::byte> body;
    std::uint64_t after;  ///< the change that the standby must have made before
  };

  [[nodiscard]] bool takes_changes() const noexcept {
    return state_ == State::kAlone || state_ == State::kPaired;
  }
  [[nodiscard]] bool may_pass(const remote::Message& message) const;
  void ask();
  void follow(remote::Peer& standby, const remote::Message& message);
  void begin_copy();
  void send_rest();
  void applied(std::uint64_t number);
  void lose_standby();
  void carry_out_requests();
  void give_answers();

  const Store& store_;
  const ParameterServer& server_;
  remote::SupervisorLine supervisor_;
  std::optional<Seconds> longest_question_;
  std::chrono::steady_clock::time_point asked_at_;
  CarryOut carry_out_;
  State state_ = State::kAsking;
  remote::Peer* standby_ = nullptr;
  std::optional<StoreCopySource> copy_;  ///< what is still to be sent
  std::uint64_t sent_ = 0;               ///< number of the last change that the standby was sent
  std::uint64_t applied_ = 0;            ///< number of the last one that it has made
  std::deque<Request> requests_;
  std::deque<Answer> answers_;
};

}  // namespace cohort::server
