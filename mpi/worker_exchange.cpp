#include "worker_exchange.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/log.h>

#include "base/clocks.h"

namespace cohort::mpi {
namespace {

using namespace std::chrono_literals;

/// The rank without its lowest bit that is set: distances to the children of a worker are the lower bits.
constexpr int parent_of(int rank) { return rank & (rank - 1); }

// These times are less where the time-out is short: see grace_time.

/// How long those who were asked may take to answer before the first worker calls them missing; and how often
/// it looks at least, for it may itself have got no processor time.
constexpr auto kTimeToAnswer = 500ms;
constexpr int kLooks = 20;
/// How long the others wait, after their own deadline, for it to say who is missing. So long also may
/// everyone take who has answered to pass on what was said: the one who hands it on gives up after this time,
/// and must not find that the others, who wait twice as long, have given up on it.
constexpr auto kTimeToConclude = 2s;

/// Longer pauses between two polls are time in which this process was suspended, and the others perhaps with
/// it. No longer than the time to answer.
constexpr auto kLongestPause = kTimeToAnswer;

/// How long those who were asked may take to answer before the first worker only says whom it waits for.
constexpr auto kTimeToAnswerReminder = 200ms;

/// How long a worker waits at the end before it says for whom; then after twice as long.
constexpr std::chrono::duration<double> kUntilReminder = 60s;

/// Polls that yield the core before a worker sleeps: by then it has waited so long that a short sleep hardly
/// adds.
constexpr unsigned kYields = 20'000;

/// Long enough for any of our messages, short enough never to wait for a receiver.
constexpr std::size_t kLongestText = 2500;

/// MPI finds a message one question after it has arrived. A first worker that comes late must not overlook
/// the failure that follows what it has found.
constexpr int kProbesOfFirst = 4;

/// Rounds are counted from 1.
constexpr std::int64_t kNoAnswer = -1;
constexpr std::int64_t kAnyRound = 0;

}  // namespace

WorkerTree::WorkerTree(int rank, int size) : rank_(rank) {
  for (int distance = 1; (rank & distance) == 0 && rank + distance < size; distance *= 2)
    children_.push_back({rank + distance, std::min(rank + 2 * distance, size)});
}

int WorkerTree::parent() const noexcept { return rank_ == 0 ? -1 : parent_of(rank_); }

std::vector<int> WorkerTree::ancestors() const {
  std::vector<int> ancestors;
  for (int rank = rank_; rank != 0;) ancestors.push_back(rank = parent_of(rank));
  return ancestors;
}

struct WorkerExchange::Round {
  std::string own;  ///< contribution
  Deadline deadline;
  std::vector<std::optional<std::string>> subtrees;  ///< contributions, by child
  bool announced = false;
  std::optional<std::string> all{};  ///< contributions

  std::vector<std::int64_t>
      answers{};  ///< by worker, the round in which it said that it was; empty: not asked
  Deadline conclusion = Deadline::never();
  int looks = 0;

  [[nodiscard]] bool has_asked() const noexcept { return !answers.empty(); }
  [[nodiscard]] bool is_complete() const {
    return std::ranges::all_of(subtrees, [](const auto& subtree) { return subtree.has_value(); });
  }
};

WorkerExchange::WorkerExchange(std::shared_ptr<MpiEnvironment> environment, MPI_Comm comm,
                               std::span<const WorkerInfo> workers, std::chrono::duration<double> timeout)
    : environment_(std::move(environment)),
      workers_(workers),
      rank_(comm_rank(comm)),
      tree_(rank_, static_cast<int>(workers.size())),
      timeout_(timeout),
      mailbox_(comm) {}

WorkerExchange::~WorkerExchange() {
  if (std::uncaught_exceptions() == 0 || failure_ || workers_.size() == 1 || finalized()) return;
  const WorkerInfo& own = workers_[static_cast<std::size_t>(rank_)];
  fail(Aborted(ErrorOrigin{"", rank_, own.host}, fmt::format("{} left because of an error", describe(own))));
}

template <class Step>
void WorkerExchange::poll(Step step) {
  const auto longest_pause = grace_time(kLongestPause, timeout_);
  suspended_ = {};
  auto last = Deadline::Clock::now();
  for (unsigned idle = 0;; ++idle) {
    const auto now = Deadline::Clock::now();
    if (now - last > longest_pause) suspended_ += now - last - longest_pause;
    last = now;
    if (const MpiLock::Guard guard = environment_->lock().try_acquire()) {
      mailbox_.advance();
      if (step()) return;
    }
    if (const Error* fault = environment_->fault()) {
      ErrorOrigin origin = fault->origin();
      origin.call = name();
      throw_error(fault->code(), fmt::format("{}: {}", name(), fault->what()), std::move(origin));
    }
    if (idle < kYields)
      ::sched_yield();
    else
      std::this_thread::sleep_for(50us);
  }
}

std::vector<std::string> WorkerExchange::all_gather(RoundKind round_kind, std::string_view blob) {
  const std::string all = agree(round_kind, blob, Deadline::after(timeout_));
  std::vector<std::string> by_worker;
  by_worker.reserve(workers_.size());
  for (const Contribution& contribution : parse_contributions(all)) by_worker.emplace_back(contribution.blob);
  COHORT_CHECK(by_worker.size() == workers_.size());
  return by_worker;
}

void WorkerExchange::wait_for_end() {
  if (environment_->has_failed()) {
    static_cast<void>(agree(RoundKind::kEnd, "", Deadline::after(timeout_)));
  } else {
    reminded_after_ = timeout_.count() > 0 ? std::min(timeout_, kUntilReminder) : kUntilReminder;
    reminder_ = Deadline::after(reminded_after_);
    static_cast<void>(agree(RoundKind::kEnd, "", Deadline::never()));
  }
}

std::string WorkerExchange::agree(RoundKind round_kind, std::string_view blob, Deadline deadline) {
  if (failure_) throw_error(*failure_);
  // Refuses a thread that may not call MPI, before this round has begun.
  if (workers_.size() > 1) static_cast<void>(environment_->lock().acquire());
  ++round_;
  round_kind_ = round_kind;
  Round round{.own = to_bytes({round_kind, blob}),
              .deadline = deadline,
              .subtrees{tree_.children().size(), std::nullopt}};
  if (workers_.size() == 1) return round.own;
  try {
    std::string all = gather(round);
    if (is_first()) require_same_round_kind(workers_, parse_contributions(all), name());
    // Nobody needs to know what was said at the end, and a short message never waits for its receiver.
    hand_on(round_kind == RoundKind::kEnd ? std::string_view() : all);
    return all;
  } catch (const Error& error) {
    fail(error);
    throw;
  }
}

std::string WorkerExchange::gather(Round& round) {
  poll([&] {
    for (Message& message : std::exchange(early_, {})) take(std::move(message), round);
    for (int empty = 0; empty < (is_first() ? kProbesOfFirst : 1); ++empty) {
      while (std::optional<Message> message = mailbox_.receive()) take(std::move(*message), round);
    }
    if (!round.announced && round.is_complete()) announce(round);
    if (round.all) return true;
    look_at_clock(round);
    return false;
  });
  return std::move(*round.all);
}

void WorkerExchange::take(Message message, Round& round) {
  switch (message.header.kind) {
    case Message::Kind::kLeft:
    case Message::Kind::kFailure: throw_error_of(message);
    case Message::Kind::kAnnouncement: {
      const auto child = std::ranges::find(tree_.children(), message.from, &WorkerTree::Subtree::root);
      COHORT_CHECK(child != tree_.children().end() && message.header.round == round_);
      round.subtrees[static_cast<std::size_t>(child - tree_.children().begin())] = std::move(message.text);
      break;
    }
    case Message::Kind::kConsent:
      COHORT_CHECK(message.header.round == round_);
      round.all = std::move(message.text);
      break;
    case Message::Kind::kQuestion:
      answer(message);
      // The first deadline to pass counts.
      if (!is_first() || message.header.round != round_) break;
      ask(round);
      round.answers[static_cast<std::size_t>(message.from)] = round_;
      if (round.conclusion.is_never()) round.conclusion = in(grace_time(kTimeToAnswer, timeout_));
      break;
    case Message::Kind::kAnswer:
      if (round.has_asked() && message.header.asked_in == round_)
        round.answers[static_cast<std::size_t>(message.from)] = message.header.round;
      break;
  }
}

void WorkerExchange::announce(Round& round) {
  round.announced = true;
  std::string contributions = round.own;
  for (const std::optional<std::string>& subtree : round.subtrees) contributions += *subtree;
  if (contributions.size() > ExchangeMailbox::kLongestText)
    throw Unimplemented("{}: the workers' data are longer together than the 1 GiB that one message may have",
                        name());
  if (is_first())
    round.all = std::move(contributions);
  else
    mailbox_.send({.round = round_, .kind = Message::Kind::kAnnouncement}, contributions, tree_.parent());
}

void WorkerExchange::hand_on(std::string_view all) {
  bool sent = false;
  const Deadline deadline = Deadline::after(timeout_).plus(grace_time(kTimeToConclude, timeout_));
  poll([&] {
    if (!std::exchange(sent, true)) {
      // Those with most workers below them first.
      for (std::size_t child = tree_.children().size(); child-- > 0;)
        mailbox_.send({.round = round_, .kind = Message::Kind::kConsent}, all, tree_.children()[child].root);
      mailbox_.advance();
    }
    const std::vector<int> receivers = mailbox_.unsent_to();
    if (receivers.empty()) return true;
    while (std::optional<Message> message = mailbox_.receive()) {
      if (message->ends_exchange()) throw_error_of(*message);
      if (message->header.kind == Message::Kind::kQuestion)
        answer(*message);
      else if (message->header.kind == Message::Kind::kAnnouncement)
        early_.push_back(std::move(*message));
    }
    if (has_passed(deadline))
      throw_late(receivers.front(), "; not taking what the others have said: " + list(receivers) +
                                        ". They are stopped or cannot be reached");
    return false;
  });
}

void WorkerExchange::look_at_clock(Round& round) {
  if (round.conclusion.is_never() && has_passed(round.deadline)) {
    ask(round);
    round.conclusion = in(grace_time(is_first() ? kTimeToAnswer : kTimeToConclude, timeout_));
  }
  if (has_passed(round.conclusion) && ++round.looks >= kLooks) conclude(round);
  if (should_remind()) remind(round);
}

void WorkerExchange::ask(Round& round) {
  if (round.has_asked()) return;
  has_asked_ = true;
  round.answers.assign(workers_.size(), kNoAnswer);
  for (const int worker : unheard(round))
    mailbox_.send({.round = round_, .kind = Message::Kind::kQuestion}, "", worker);
}

void WorkerExchange::answer(const Message& question) {
  has_asked_ = true;
  mailbox_.send({.round = round_, .asked_in = question.header.round, .kind = Message::Kind::kAnswer}, "",
                question.from);
}

void WorkerExchange::conclude(Round& round) {
  // The first worker knows better.
  const bool first_concludes = !is_first() && round.answers.front() == round_;
  const std::vector<int> silent = behind(round, kAnyRound);
  if (!silent.empty() && !first_concludes) throw_missing(silent);
  // All have come, and what they said may still be on its way.
  if (!has_passed(round.conclusion.plus(grace_time(kTimeToConclude, timeout_)))) return;
  const std::vector<int> stuck = behind(round, round_);
  if (!stuck.empty()) throw_missing(stuck);
  // The first worker knows whose data have not arrived; another one may wait for anybody.
  const std::vector<int> lost = is_first() ? unheard(round) : std::vector<int>();
  const std::string whom =
      (lost.size() == 1 ? "" : "at least one of ") + (lost.empty() ? "them" : list(lost));
  throw_late(
      lost.size() == 1 ? lost.front() : -1,
      fmt::format(" while the workers' data were gathered. All workers had come; since then {} is stopped "
                  "or cannot be reached",
                  whom));
}

std::vector<int> WorkerExchange::unheard(const Round& round) const {
  if (!is_first()) return tree_.ancestors();
  std::vector<int> workers;
  for (std::size_t child = 0; child < round.subtrees.size(); ++child) {
    if (round.subtrees[child]) continue;
    const WorkerTree::Subtree& ranks = tree_.children()[child];
    for (int worker = ranks.root; worker < ranks.end; ++worker) workers.push_back(worker);
  }
  return workers;
}

std::vector<int> WorkerExchange::behind(const Round& round, std::int64_t wanted) const {
  std::vector<int> workers = unheard(round);
  std::erase_if(workers,
                [&](int worker) { return round.answers[static_cast<std::size_t>(worker)] >= wanted; });
  return workers;
}

void WorkerExchange::remind(Round& round) {
  if (is_first() && !round.has_asked()) {
    ask(round);
    reminder_ = in(kTimeToAnswerReminder);
    return;
  }
  constexpr int kFirst = 0;
  std::string whom;
  if (is_first()) whom = list(behind(round, kAnyRound));
  // The first worker knows who is missing, if it has come itself. One line of another one says enough.
  if (rank_ == 1) whom = list({&kFirst, 1}) + ", or for those it waits for";
  if (!whom.empty())
    logging::warning("{}: waiting for {:.3g} s for {}", name(), reminded_after_.count(), whom);
  reminder_ = in(reminded_after_);
  reminded_after_ *= 2;
}

void WorkerExchange::fail(const Error& error) {
  failure_.emplace(error);
  Message message{.header = {.round = round_,
                             .kind = Message::Kind::kFailure,
                             .code = error.code(),
                             .culprit = error.origin().member},
                  .text = std::string(error.what()).substr(0, kLongestText)};
  try {
    const MpiLock::Guard guard = environment_->lock().acquire();
    if (is_first()) {
      for (int worker = 1; worker < static_cast<int>(workers_.size()); ++worker)
        mailbox_.send(message, worker);
      return;
    }
    // Those below would ask this worker, which does not answer any more.
    for (const WorkerTree::Subtree& child : tree_.children()) mailbox_.send(message, child.root);
    message.header.kind = Message::Kind::kLeft;
    mailbox_.send(message, 0);
  } catch (const std::exception&) {
    return;  // MPI itself is what failed
  }
}

void WorkerExchange::throw_error_of(const Message& message) const {
  const std::int32_t culprit = message.header.culprit;
  const std::string host = culprit < 0 ? std::string() : workers_[static_cast<std::size_t>(culprit)].host;
  throw_error(message.header.code, message.text, ErrorOrigin{name(), culprit, host});
}

void WorkerExchange::throw_missing(std::span<const int> absent) const {
  const WorkerInfo& first = workers_[static_cast<std::size_t>(absent.front())];
  throw DeadlineExceeded(
      ErrorOrigin{name(), first.rank, first.host},
      fmt::format(
          "{}: deadline of {:.4g} s passed; missing: {}. They are stopped, busy elsewhere, wait for others "
          "themselves, or took another path through the program; raise the time-out "
          "(COHORT_COLLECTIVE_TIMEOUT_SECONDS) if they are only slow",
          name(), timeout_.count(), list(absent)));
}

void WorkerExchange::throw_late(int culprit, const std::string& what) const {
  const std::string host = culprit < 0 ? std::string() : workers_[static_cast<std::size_t>(culprit)].host;
  throw DeadlineExceeded(ErrorOrigin{name(), culprit, host},
                         fmt::format("{}: deadline of {:.4g} s passed{}", name(), timeout_.count(), what));
}

std::string WorkerExchange::list(std::span<const int> workers) const {
  std::vector<std::string> names;
  for (const int worker : workers) names.push_back(describe(workers_[static_cast<std::size_t>(worker)]));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string WorkerExchange::name() const { return fmt::format("{} #{}", name_of(round_kind_), round_); }

}  // namespace cohort::mpi
