// What workers tell each other while there is no communicator yet, and at the end. Every
// worker announces to the first one what it is about to do. The first one answers all: with
// consent, or with the error that all of them throw because a worker is missing, does
// something else, or has left. Then MPI gathers what they say.
//
// Nothing waits inside MPI: a lost worker and the deadline end every wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>

#include "calls.h"
#include "environment.h"
#include "transport/pending_sends.h"

namespace cohort::mpi {

/// What the workers do together. One that ends while others go on is found out by it.
enum class RoundKind : std::int32_t { kExchange, kMakeCommunicator, kSplit, kEnd };

class WorkerExchange {
 public:
  /// `workers` are the members of `comm` by rank; both outlive it. Nobody else sends messages over `comm`.
  /// `timeout` is how long each call waits for the others; for ever when zero.
  WorkerExchange(std::shared_ptr<MpiEnvironment> environment, MPI_Comm comm,
                 std::span<const WorkerInfo> workers, std::chrono::duration<double> timeout);
  /// The others are told if an exception has brought it about.
  ~WorkerExchange();

  WorkerExchange(const WorkerExchange&) = delete;
  WorkerExchange& operator=(const WorkerExchange&) = delete;

  /// Every worker's blob, by rank.
  /// @throws on all workers the same DeadlineExceeded or InvalidArgument, naming the workers that are
  /// missing or do something else, or Unavailable, naming one that is lost; all later calls throw it too.
  [[nodiscard]] std::vector<std::string> all_gather(RoundKind round_kind, std::string_view blob);

  /// Returns when all workers have come to their end, however long that takes; says now and then who is
  /// waited for. After a failure of a communicator only until the deadline, since others may never come.
  /// @throws as `all_gather`.
  void wait_for_end();

  /// Messages may still be on their way.
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }

 private:
  struct Message;

  void agree(RoundKind round_kind, Deadline deadline);
  void hear_all(Deadline deadline);
  void ask_first(Deadline deadline);
  void require_same_round_kind(std::span<const RoundKind> round_kinds) const;
  /// One of MPI's non-blocking collectives, which `start` starts and which reads and writes `memory`.
  template <class Start>
  void complete(std::shared_ptr<const void> memory, Start start);
  /// Calls `step`, while this thread may call MPI, until it returns true. @throws if a worker is lost.
  template <class Step>
  void poll(Step step);
  /// Within `poll`: whether the deadline has passed, not counting the time in which this process was
  /// suspended.
  [[nodiscard]] bool has_passed(const Deadline& deadline) const {
    return deadline.plus(suspended_).expired();
  }
  /// At the end: whether it is time to say whom this worker waits for.
  [[nodiscard]] bool should_remind() const { return round_kind_ == RoundKind::kEnd && has_passed(reminder_); }
  void remind(const std::string& whom);

  void send(const Message& message, int to);
  /// What has arrived, failures first.
  [[nodiscard]] std::optional<Message> receive();
  [[nodiscard]] std::optional<Message> receive(int tag);
  /// Ends this and later rounds on all workers.
  void fail(const Error& error);
  [[noreturn]] void throw_error_of(const Message& message) const;
  [[noreturn]] void throw_missing(std::span<const int> absent) const;
  /// The names of some.
  [[nodiscard]] std::string list(std::span<const int> workers) const;
  /// For example `exchange #4`.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool is_first() const noexcept { return rank_ == 0; }

  const std::shared_ptr<MpiEnvironment> environment_;
  MPI_Comm comm_;
  const std::span<const WorkerInfo> workers_;
  const int rank_;
  const std::chrono::duration<double> timeout_;
  std::int64_t round_ = 0;
  RoundKind round_kind_ = RoundKind::kExchange;
  Deadline::Clock::duration suspended_{0};  ///< of the time since the latest `poll` began
  Deadline reminder_ = Deadline::never();
  std::chrono::duration<double> reminded_after_{0};
  PendingSends pending_sends_;
  std::optional<Error> failure_;
};

}  // namespace cohort::mpi
