// What executions write to a server: it is made once, at once or after the commit at the server that decides,
// and what a lost incarnation still sends is not made. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "server/commit_message.h"
#include "server/optimizers_on_server.h"
#include "server/store.h"

namespace cohort::server {

/// Writes that wait for the commit at the server that decides.
using Preparations = std::map<Execution, CommitMessage>;

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

}  // namespace cohort::server
