// What workers tell each other while there is no communicator yet, and at the end. In each round they gather,
// along a binomial tree, what all of them are about to do and what each has to say. The first worker then
// answers, along the same tree: with everything that was said, which is its consent, or, to each of them,
// with the error that all throw because a worker is missing, does something else, or has left.
//
// A worker that is missing hides those below it in the tree. So whoever has waited for too long
// asks: the first worker all whom it has not heard of, the others those between it and the first one.
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
#include "messages.h"

namespace cohort::mpi {

/// The binomial tree along which workers agree, with worker 0 at its root [van de Geijn 1991]: log2(p) steps
/// lead from the root to the lowest of p workers. The subtree of a worker is a range of ranks that begins
/// with its own, so that what it has gathered is in the order of ranks.
class WorkerTree {
 public:
  WorkerTree(int rank, int size);

  /// -1 at the root.
  [[nodiscard]] int parent() const noexcept;
  /// From the parent up to the root.
  [[nodiscard]] std::vector<int> ancestors() const;

  struct Subtree {
    int root = 0;
    int end = 0;  ///< one past the last rank
  };
  /// Those of this worker's children, in the order of ranks; together with itself they are its own subtree.
  [[nodiscard]] const std::vector<Subtree>& children() const noexcept { return children_; }

 private:
  int rank_;
  std::vector<Subtree> children_;
};

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

  /// Messages may still be on their way: the communicator must not be freed.
  [[nodiscard]] bool leaves_messages() const noexcept { return failure_.has_value() || has_asked_; }

 private:
  using Message = ExchangeMessage;
  struct Round;

  /// The contributions of all workers.
  [[nodiscard]] std::string agree(RoundKind round_kind, std::string_view blob, Deadline deadline);
  [[nodiscard]] std::string gather(Round& round);
  void hand_on(std::string_view all);
  void take(Message message, Round& round);
  void announce(Round& round);

  /// Asks the others where they are, or gives up, when it is time.
  void look_at_clock(Round& round);
  void ask(Round& round);
  void answer(const Message& question);
  void conclude(Round& round);
  /// The workers without whom the round does not end, as far as this one knows.
  [[nodiscard]] std::vector<int> unheard(const Round& round) const;
  /// Of those, the ones that have not answered to be in the round `wanted` or a later one.
  [[nodiscard]] std::vector<int> behind(const Round& round, std::int64_t wanted) const;

  /// Calls `step`, while this thread may call MPI, until it returns true. @throws if a worker is lost.
  template <class Step>
  void poll(Step step);
  /// Within `poll`: whether the deadline has passed, not counting the time in which this process was
  /// suspended.
  [[nodiscard]] bool has_passed(const Deadline& deadline) const {
    return deadline.plus(suspended_).expired();
  }
  /// Within `poll`: the deadline that has passed when so much time has.
  [[nodiscard]] Deadline in(std::chrono::duration<double> time) const {
    return Deadline::after(time).plus(-suspended_);
  }
  /// At the end: whether it is time to say whom this worker waits for.
  [[nodiscard]] bool should_remind() const { return round_kind_ == RoundKind::kEnd && has_passed(reminder_); }
  void remind(Round& round);

  /// Ends this and later rounds on all workers.
  void fail(const Error& error);
  [[noreturn]] void throw_error_of(const Message& message) const;
  [[noreturn]] void throw_missing(std::span<const int> absent) const;
  [[noreturn]] void throw_late(int culprit, const std::string& what) const;
  /// The names of some.
  [[nodiscard]] std::string list(std::span<const int> workers) const;
  /// For example `exchange #4`.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool is_first() const noexcept { return rank_ == 0; }

  const std::shared_ptr<MpiEnvironment> environment_;
  const std::span<const WorkerInfo> workers_;
  const int rank_;
  const WorkerTree tree_;
  const std::chrono::duration<double> timeout_;
  std::int64_t round_ = 0;
  RoundKind round_kind_ = RoundKind::kExchange;
  Deadline::Clock::duration suspended_{0};  ///< of the time since the latest `poll` began
  Deadline reminder_ = Deadline::never();
  std::chrono::duration<double> reminded_after_{0};
  ExchangeMailbox mailbox_;
  std::vector<Message> early_;  ///< of the next round
  bool has_asked_ = false;      ///< or answered, and nobody may have received it
  std::optional<Error> failure_;
};

}  // namespace cohort::mpi
