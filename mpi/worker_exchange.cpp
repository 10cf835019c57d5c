#include "worker_exchange.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/log.h>

#include "vote.h"

namespace cohort::mpi {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 1;
/// Of messages that end the exchange, which are looked for also while data is gathered.
constexpr int kFailureTag = 2;

/// How long the first worker, after a deadline, goes on looking for those that are missing; and how often
/// at least, for it may itself have got no processor time.
constexpr auto kTimeToShowUp = 200ms;
constexpr int kLooks = 20;
/// How long the others wait, after their own deadline, for it to say who is missing.
constexpr auto kTimeToConclude = 2s;

/// Longer pauses between two polls are time in which this process was suspended, and the others perhaps with
/// it.
constexpr auto kLongestPause = 500ms;

/// How long a worker waits at the end before it says for whom; then after twice as long.
constexpr std::chrono::duration<double> kUntilReminder = 60s;

/// Polls that yield the core before a worker sleeps: by then it has waited so long that a short sleep hardly
/// adds.
constexpr unsigned kYields = 20'000;

/// Long enough for any of our messages, short enough never to wait for a receiver.
constexpr std::size_t kLongestText = 2500;

enum class Kind : std::int32_t {
  // to the first worker
  kAnnouncement,
  kLate,  ///< the sender's deadline has passed
  kLeft,  ///< the sender has failed
  // from it
  kConsent,
  kFailure,
};

constexpr const char* kNames[] = {"exchange", "make_communicator", "split", "end of the session"};
constexpr const char* kDeeds[] = {"exchanges data", "makes a communicator", "splits its group",
                                  "ends its Session"};

struct Header {
  std::int64_t round = 0;
  Kind kind = Kind::kAnnouncement;
  RoundKind round_kind = RoundKind::kExchange;
  ErrorCode code{};           ///< of an error,
  std::int32_t culprit = -1;  ///< and the worker that caused it
};

/// What MPI reads and writes while it gathers blobs.
struct Blobs {
  std::string own;
  std::uint64_t own_size = 0;
  std::vector<std::uint64_t> sizes;
  std::vector<int> counts;
  std::vector<int> offsets;
  std::string all;
};

}  // namespace

struct WorkerExchange::Message {
  Header header;
  std::string text{};  ///< of an error
  int from = 0;
};

WorkerExchange::WorkerExchange(std::shared_ptr<MpiEnvironment> environment, MPI_Comm comm,
                               std::span<const WorkerInfo> workers, std::chrono::duration<double> timeout)
    : environment_(std::move(environment)),
      comm_(comm),
      workers_(workers),
      rank_(comm_rank(comm)),
      timeout_(timeout) {}

WorkerExchange::~WorkerExchange() {
  if (std::uncaught_exceptions() > 0 && !failure_ && workers_.size() > 1 && !finalized()) {
    const WorkerInfo& own = workers_[static_cast<std::size_t>(rank_)];
    fail(
        Aborted(ErrorOrigin{"", rank_, own.host}, fmt::format("{} left because of an error", describe(own))));
  }
  pending_sends_.leak();
}

template <class Step>
void WorkerExchange::poll(Step step) {
  suspended_ = {};
  auto last = Deadline::Clock::now();
  for (unsigned idle = 0;; ++idle) {
    const auto now = Deadline::Clock::now();
    if (now - last > kLongestPause) suspended_ += now - last - kLongestPause;
    last = now;
    if (const MpiLock::Guard guard = environment_->lock().try_acquire()) {
      static_cast<void>(pending_sends_.advance());
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

template <class Start>
void WorkerExchange::complete(std::shared_ptr<const void> memory, Start start) {
  const Deadline deadline = Deadline::after(timeout_).plus(kTimeToConclude);
  try {
    MPI_Request request = MPI_REQUEST_NULL;
    bool started = false;
    poll([&] {
      if (!std::exchange(started, true)) request = start();
      if (test(request)) return true;
      // A worker may have given up before the last one came.
      if (const std::optional<Message> failure = receive(kFailureTag)) throw_error_of(*failure);
      if (!has_passed(deadline)) return false;
      throw DeadlineExceeded(
          ErrorOrigin{name(), -1, {}},
          fmt::format(
              "{}: deadline of {:.4g} s passed while the workers' data were gathered. All workers had "
              "come; one of them is stopped or cannot be reached",
              name(), timeout_.count()));
    });
  } catch (const Error& error) {
    keep_for_ever(std::move(memory));
    fail(error);
    throw;
  }
}

std::vector<std::string> WorkerExchange::all_gather(RoundKind round_kind, std::string_view blob) {
  agree(round_kind, Deadline::after(timeout_));
  if (workers_.size() == 1) return {std::string(blob)};

  const auto blobs = std::make_shared<Blobs>();
  blobs->own = blob;
  blobs->own_size = blob.size();
  blobs->sizes.resize(workers_.size());
  complete(blobs, [&] { return iall_gather(&blobs->own_size, blobs->sizes.data(), 1, MPI_UINT64_T, comm_); });

  std::size_t total = 0;
  for (const std::uint64_t size : blobs->sizes) {
    blobs->offsets.push_back(static_cast<int>(total));
    blobs->counts.push_back(static_cast<int>(size));
    total += size;
    if (total > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw Unimplemented("{}: the workers' data are longer together than the 2 GiB that MPI can gather",
                          name());
  }
  blobs->all.resize(total);
  complete(blobs, [&] {
    return iall_gather_uneven(blobs->own.data(), static_cast<int>(blob.size()), blobs->all.data(),
                              blobs->counts.data(), blobs->offsets.data(), MPI_BYTE, comm_);
  });

  std::vector<std::string> by_worker;
  for (std::size_t i = 0; i < workers_.size(); ++i)
    by_worker.push_back(blobs->all.substr(static_cast<std::size_t>(blobs->offsets[i]), blobs->sizes[i]));
  return by_worker;
}

void WorkerExchange::wait_for_end() {
  if (environment_->has_failed()) {
    agree(RoundKind::kEnd, Deadline::after(timeout_));
  } else {
    reminded_after_ = timeout_.count() > 0 ? std::min(timeout_, kUntilReminder) : kUntilReminder;
    reminder_ = Deadline::after(reminded_after_);
    agree(RoundKind::kEnd, Deadline::never());
  }
  // MPI may be finalised next, and must have taken what the first worker has sent.
  poll([&] { return pending_sends_.empty(); });
}

void WorkerExchange::agree(RoundKind round_kind, Deadline deadline) {
  if (failure_) throw_error(*failure_);
  // Refuses a thread that may not call MPI, before this round has begun.
  if (workers_.size() > 1) static_cast<void>(environment_->lock().acquire());
  ++round_;
  round_kind_ = round_kind;
  if (workers_.size() == 1) return;
  try {
    if (is_first())
      hear_all(deadline);
    else
      ask_first(deadline);
  } catch (const Error& error) {
    fail(error);
    throw;
  }
}

void WorkerExchange::hear_all(Deadline deadline) {
  std::vector<std::optional<RoundKind>> heard(workers_.size());
  heard.front() = round_kind_;
  deadline = deadline.plus(kTimeToShowUp);
  int looks = 0;
  poll([&] {
    while (const std::optional<Message> message = receive()) {
      const Deadline soon = Deadline::after(kTimeToShowUp).plus(-suspended_);
      if (message->header.kind == Kind::kLeft) throw_error_of(*message);
      if (message->header.kind == Kind::kAnnouncement)
        heard[static_cast<std::size_t>(message->from)] = message->header.round_kind;
      else if (message->header.round == round_ && soon.at() < deadline.at())
        deadline = soon;
    }
    std::vector<int> absent;
    for (std::size_t worker = 0; worker < heard.size(); ++worker) {
      if (!heard[worker]) absent.push_back(static_cast<int>(worker));
    }
    if (!absent.empty() && has_passed(deadline) && ++looks >= kLooks) throw_missing(absent);
    if (!absent.empty() && should_remind()) remind(list(absent));
    return absent.empty();
  });
  std::vector<RoundKind> round_kinds;
  round_kinds.reserve(heard.size());
  for (const std::optional<RoundKind>& round_kind : heard) round_kinds.push_back(*round_kind);
  require_same_round_kind(round_kinds);
  const MpiLock::Guard guard = environment_->lock().acquire();
  for (int worker = 1; worker < static_cast<int>(workers_.size()); ++worker)
    send({.header = {.round = round_, .kind = Kind::kConsent}}, worker);
}

void WorkerExchange::ask_first(Deadline deadline) {
  {
    const MpiLock::Guard guard = environment_->lock().acquire();
    send({.header = {.round = round_, .kind = Kind::kAnnouncement, .round_kind = round_kind_}}, 0);
  }
  const Deadline end = deadline.plus(kTimeToConclude);
  bool said_late = false;
  int looks = 0;
  poll([&] {
    if (const std::optional<Message> answer = receive()) {
      if (answer->header.kind == Kind::kFailure) throw_error_of(*answer);
      return true;
    }
    if (has_passed(deadline) && !std::exchange(said_late, true))
      send({.header = {.round = round_, .kind = Kind::kLate}}, 0);
    constexpr int kFirst = 0;
    if (has_passed(end) && ++looks >= kLooks) throw_missing({&kFirst, 1});
    // The first worker knows who is missing, if it has come itself. One line says enough.
    if (rank_ == 1 && should_remind()) remind(list({&kFirst, 1}) + ", or for those it waits for");
    return false;
  });
}

void WorkerExchange::remind(const std::string& whom) {
  logging::warning("{}: waiting for {:.3g} s for {}", name(), reminded_after_.count(), whom);
  reminder_ = Deadline::after(reminded_after_).plus(-suspended_);
  reminded_after_ *= 2;
}

void WorkerExchange::require_same_round_kind(std::span<const RoundKind> round_kinds) const {
  const Vote vote = count_votes(round_kinds);
  if (vote.is_unanimous()) return;
  const auto deed = [&](std::size_t worker) {
    return fmt::format("{} {}", describe(workers_[worker]),
                       kDeeds[static_cast<std::size_t>(round_kinds[worker])]);
  };
  std::vector<std::string> odd;
  for (const std::size_t worker : vote.odd) odd.push_back(deed(worker));
  const WorkerInfo& culprit = workers_[vote.odd.front()];
  throw InvalidArgument(ErrorOrigin{name(), culprit.rank, culprit.host},
                        fmt::format("{}: all workers must use their Session alike, but {}, while {}", name(),
                                    fmt::join(odd, ", "), deed(vote.usual)));
}

void WorkerExchange::send(const Message& message, int to) {
  const bool ends = message.header.kind == Kind::kLeft || message.header.kind == Kind::kFailure;
  pending_sends_.send(comm_, to, ends ? kFailureTag : kTag, std::as_bytes(std::span(&message.header, 1)),
                      std::as_bytes(std::span(message.text)));
}

std::optional<WorkerExchange::Message> WorkerExchange::receive() {
  if (std::optional<Message> failure = receive(kFailureTag)) return failure;
  return receive(kTag);
}

std::optional<WorkerExchange::Message> WorkerExchange::receive(int tag) {
  const std::optional<MessageInfo> info = iprobe_any(tag, comm_);
  if (!info) return std::nullopt;
  std::string bytes(info->bytes, '\0');
  recv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, info->source, tag, comm_);
  Message message;
  COHORT_CHECK(bytes.size() >= sizeof message.header);
  std::memcpy(&message.header, bytes.data(), sizeof message.header);
  message.text = bytes.substr(sizeof message.header);
  message.from = info->source;
  return message;
}

void WorkerExchange::fail(const Error& error) {
  failure_.emplace(error);
  const Message message{.header = {round_, is_first() ? Kind::kFailure : Kind::kLeft, round_kind_,
                                   error.code(), error.origin().member},
                        .text = std::string(error.what()).substr(0, kLongestText)};
  try {
    const MpiLock::Guard guard = environment_->lock().acquire();
    if (!is_first()) return send(message, 0);
    for (int worker = 1; worker < static_cast<int>(workers_.size()); ++worker) send(message, worker);
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

std::string WorkerExchange::list(std::span<const int> workers) const {
  std::vector<std::string> names;
  for (const int worker : workers) names.push_back(describe(workers_[static_cast<std::size_t>(worker)]));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string WorkerExchange::name() const {
  return fmt::format("{} #{}", kNames[static_cast<std::size_t>(round_kind_)], round_);
}

}  // namespace cohort::mpi
