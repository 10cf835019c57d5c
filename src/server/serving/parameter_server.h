// What a parameter server does with requests: it makes variables, reads them, and commits what executions
// write. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <cohort/remote/endpoint.h>

#include "optimizers_on_server.h"
#include "protocol.h"
#include "server/store/store.h"
#include "value_in_peer.h"

namespace cohort::server {

/// Where what a server does is heard of by others: those who asked for it, and whoever keeps a copy of its
/// variables and must know of a change before they do.
class ServerOutput {
 public:
  virtual ~ServerOutput() = default;

  /// Whether the requests that `changed` gets must have all values in them.
  [[nodiscard]] virtual bool wants_values() const noexcept = 0;

  /// A request was carried out that changed what the server keeps. Its answer comes after.
  virtual void changed(MessageKind kind, std::span<const std::byte> body) = 0;

  /// The answer to a request that may change something, kReply or kFailure.
  virtual void answer(remote::Peer& peer, MessageKind kind, std::uint64_t number,
                      std::span<const std::byte> body) = 0;
};

/// Writes that wait for the commit at the server that decides.
using Preparations = std::map<Execution, CommitMessage>;

/// What executions write to a server: it is made once, at once or after the commit at the server that
/// decides, and what a lost incarnation still sends is not made.
class Executions {
 public:
  /// `store` outlives it.
  Executions(Store& store, Preparations prepared) : store_(store), prepared_(std::move(prepared)) {}

  [[nodiscard]] const Preparations& prepared() const noexcept { return prepared_; }
  [[nodiscard]] Preparations take_prepared() noexcept { return std::move(prepared_); }

  /// Whether its message is a repetition of one that was answered: the answer was lost, or it was late.
  [[nodiscard]] bool is_settled(const Execution& execution) const;

  /// @throws Aborted for an execution of a lost incarnation.
  void require_not_fenced(const Execution& execution) const;

  /// Makes the writes of an execution that is not settled. Returns, encoded, how often each variable was
  /// changed since the task of its gradient read it.
  /// @throws what `server::apply` throws: then nothing was changed.
  std::vector<std::byte> commit(const CommitMessage& message);

  /// Keeps the writes for `make_prepared`. @throws what it would throw.
  void prepare(CommitMessage message);

  /// False: nothing was prepared.
  [[nodiscard]] bool make_prepared(const Execution& execution);

  /// Nothing more is taken from the incarnation.
  [[nodiscard]] FenceAnswer fence(std::uint64_t incarnation);

  /// Forgets what the incarnation has prepared and committed.
  void drop(std::uint64_t incarnation);

  /// Part of the store's open commit, as `server::apply`.
  void apply(const Write& write) { server::apply(write, store_, optimizers_); }

 private:
  void forget(std::uint64_t incarnation, std::uint64_t number);

  Store& store_;
  OptimizersOnServer optimizers_;
  Preparations prepared_;
  std::map<std::uint64_t, std::uint64_t> forgotten_;  ///< by incarnation: up to which number
};

/// Answers each request before it takes the next; nothing waits but the creation of a variable whose first
/// value another task brings.
class ParameterServer {
 public:
  /// `output` outlives it; null: answers go straight to those who asked.
  explicit ParameterServer(Store& store, ServerOutput* output = nullptr, Preparations prepared = {})
      : store_(store), output_(output), executions_(store, std::move(prepared)) {}

  /// Answers a request of `peer`.
  void answer(remote::Peer& peer, const remote::Message& message);

  [[nodiscard]] const Preparations& prepared() const noexcept { return executions_.prepared(); }
  [[nodiscard]] Preparations take_prepared() noexcept { return executions_.take_prepared(); }

  /// Forgets who waits, of a peer that is lost.
  void on_lost(const remote::Peer& peer);

  /// Nobody brings the first values of variables any more: those who wait for them get `error`.
  void fail_waiters(const Error& error);
  [[nodiscard]] bool has_waiters() const noexcept { return !waiters_.empty(); }

  /// Somebody may bring them, again.
  void expect_values() noexcept { no_values_.reset(); }

 private:
  struct Waiter {
    remote::Peer* peer;
    std::uint64_t request;
    std::vector<std::byte> body;
  };

  /// The answer; nothing if it is given later.
  [[nodiscard]] std::vector<std::byte> serve(remote::Peer& peer, const remote::Message& message, bool& later);
  [[nodiscard]] std::vector<std::byte> create(remote::Peer& peer, const remote::Message& message,
                                              bool& later);
  void answer_waiters(std::uint64_t number);
  [[nodiscard]] std::optional<VariableIndex> find(std::uint64_t number) const;
  [[nodiscard]] std::vector<std::byte> read(remote::Peer& peer, const remote::Message& message, bool& later);
  [[nodiscard]] std::vector<std::byte> take(remote::Peer& peer, const remote::Message& message);
  void reply(remote::Peer& peer, const remote::Message& request, MessageKind kind,
             std::span<const std::byte> body);
  void tell(MessageKind kind, std::span<const std::byte> body);
  bool fetch_values(CommitMessage& message);
  [[nodiscard]] FinishAnswer finish(const Execution& execution);

  Store& store_;
  ServerOutput* output_;
  Executions executions_;
  SenderHeaps heaps_;
  std::unique_ptr<Error> no_values_;              ///< why nobody brings first values any more
  std::multimap<std::uint64_t, Waiter> waiters_;  ///< by the number of the variable that they wait for
};

}  // namespace cohort::server
