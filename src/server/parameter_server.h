// What a parameter server does with requests: it makes variables, reads them, and commits what executions
// write. It answers each request before it takes the next; nothing waits but the creation of a variable
// whose first value another task brings.
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

#include "server/commit_message.h"
#include "server/executions.h"
#include "server/sender_heap.h"
#include "server/server_output.h"
#include "server/store.h"

namespace cohort::server {

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
