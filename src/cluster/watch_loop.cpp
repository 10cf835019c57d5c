#include "watch_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include <cohort/base/log.h>

#include "base/explanation.h"
#include "base/quiet_thread.h"

namespace cohort::watch {
namespace {

void write_line(const std::string& line) {
  const std::string text = line + '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

const char* signal_name(int signal) {
  return signal == SIGINT ? "SIGINT" : signal == SIGTERM ? "SIGTERM" : "a signal";
}

}  // namespace

Loop::Loop(PeerWatchOptions options) : options_(std::move(options)) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    const int error = errno;
    throw Unavailable(
        "{} cannot watch the other workers: pipe2: {} (ulimit -n says how many files a process may open)",
        describe_worker(options_.rank), std::strerror(error));
  }
  wake_.reset(ends[0]);
  to_wake_.reset(ends[1]);
  if (options_.handle_signals) signals_.emplace();
  thread_ = start_quiet_thread([this] { run(); });
}

Loop::~Loop() {
  post([this] { stopped_ = true; });
  thread_.join();
  signals_.reset();  // before the line that its handler may print is freed
}

void Loop::post(std::function<void()> command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake();
}

void Loop::wake() {
  const char byte = 0;
  // A pipe that is full wakes the thread just as well.
  [[maybe_unused]] const ssize_t written = ::write(to_wake_.get(), &byte, 1);
}

void Loop::listen(Fd socket, Reach reach, const std::string& secret) {
  auto listener = std::make_shared<Listener>(Listener{std::move(socket), reach, secret});
  post([this, listener] { listeners_.push_back(std::move(*listener)); });
}

void Loop::stop_listening() {
  post([this] {
    listeners_.clear();
    std::erase_if(links_, [](const auto& link) { return link->rank < 0; });
  });
}

void Loop::set_uplink(std::unique_ptr<Link> link) {
  post([this, shared = std::make_shared<std::unique_ptr<Link>>(std::move(link))] {
    uplink_ = shared->get();
    links_.push_back(std::move(*shared));
  });
}

void Loop::announce_failure(const std::string& text) {
  auto told = std::make_shared<std::promise<void>>();
  std::future<void> done = told->get_future();
  post([this, text, told] {
    if (own_failure_.empty() && !fault_) {
      own_failure_ = text;
      forward({FrameKind::kFailed, options_.rank, 0,
               fmt::format("{} failed: {}", describe_worker(options_.rank), text)},
              nullptr);
      end_later();
    }
    told->set_value();
  });
  // The caller may be about to end the process, so the frames should be out; but a watch that
  // is itself in trouble must not keep it from ending.
  done.wait_for(std::chrono::milliseconds(200));
}

void Loop::mute() noexcept {
  if (signals_) signals_->set_last_words(nullptr);
}

void Loop::tell(int worker, std::string note) {
  post([this, frame = Frame{FrameKind::kNote, worker, 0, std::move(note)}] { deliver(frame, nullptr); });
}

void Loop::tell_all(std::string note) {
  post([this, frame = Frame{FrameKind::kNoteToAll, -1, 0, std::move(note)}] { forward(frame, nullptr); });
}

void Loop::hear_notes(std::function<void(std::string_view)> hear) {
  post([this, hear = std::move(hear)] { hear_note_ = hear; });
}

bool Loop::leave() {
  post([this] {
    leaving_ = true;
    leave_when_all_below_left();
  });
  return left_.get_future().get();
}

bool Loop::leave_within(std::chrono::milliseconds limit) {
  post([this] {
    leaving_ = true;
    waits_for_chief_ = false;
    leave_when_all_below_left();
  });
  std::future<bool> left = left_.get_future();
  if (left.wait_for(limit) == std::future_status::ready) return left.get();
  auto told = std::make_shared<std::promise<void>>();
  std::future<void> done = told->get_future();
  // They hear what they would hear if all had left: nobody watches them any more.
  post([this, told] {
    if (uplink_ != nullptr && !std::exchange(told_uplink_, true))
      uplink_->send({FrameKind::kBye, options_.rank, 0, {}});
    all_have_left();
    told->set_value();
  });
  done.wait();
  return false;
}

void Loop::run() {
  while (!stopped_) {
    wait_for_events();
    run_commands();
    accept_all();
    read_links();
    check_clocks();
    // Last, so that a reason that arrives together with the signal is known.
    if (signals_) {
      if (const int signal = signals_->take(); signal != 0) interrupted_by(signal);
    }
  }
}

void Loop::wait_for_events() {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  if (signals_) polled.push_back({signals_->fd(), POLLIN, 0});
  for (const Listener& listener : listeners_) polled.push_back({listener.socket.get(), POLLIN, 0});
  const std::size_t first_of_links = polled.size();
  for (const auto& link : links_) {
    polled.push_back({link->fd(), static_cast<short>(link->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
    polled.push_back({link->process_fd(), POLLIN, 0});  // ignored if there is none
  }
  const TimePoint due = next_due();
  round_due_ = std::min(due, Clock::now() + options_.beat);  // without links none is due
  const bool any = poll_until(polled, due);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const pollfd* const of_link = &polled[first_of_links + 2 * i];
    links_[i]->is_ready = any && (of_link[0].revents != 0 || of_link[1].revents != 0);
  }
  std::array<char, 64> ignored{};
  while (::read(wake_.get(), ignored.data(), ignored.size()) == static_cast<ssize_t>(ignored.size())) {
  }
}

Loop::TimePoint Loop::next_due() const {
  TimePoint due = TimePoint::max();
  if (end_at_) due = std::min(due, *end_at_);
  if (interruption_ends_at_) due = std::min(due, *interruption_ends_at_);
  if (!links_.empty()) due = std::min(due, next_beat_);
  for (const auto& link : links_) {
    if (judges_silence_of(*link)) due = std::min(due, link->last_heard + options_.silence);
  }
  return due;
}

/// False where neither silence nor a further fault would mean anything.
bool Loop::judges_silence_of(const Link& link) const {
  return options_.silence.count() > 0 && link.confirmed && !link.left && !fault_ && own_failure_.empty() &&
         !interruption_ && dying_of_ == 0;
}

void Loop::run_commands() {
  std::vector<std::function<void()>> commands;
  {
    const std::lock_guard lock(mutex_);
    commands.swap(commands_);
  }
  for (const auto& command : commands) command();
}

void Loop::accept_all() {
  for (const Listener& listener : listeners_) {
    for (Fd& socket : watch::accept_all(listener.socket).sockets) {
      auto link = std::make_unique<Link>(std::move(socket), listener.reach);
      if (listener.reach == Reach::kNode && !link->identify()) continue;
      drop_oldest_stranger();
      links_.push_back(std::move(link));
    }
  }
}

/// Where more have connected without proving who they are than this job has workers, and some.
void Loop::drop_oldest_stranger() {
  constexpr std::size_t kSpare = 64;
  const auto is_stranger = [](const auto& link) { return link->rank < 0; };
  const auto strangers = static_cast<std::size_t>(std::count_if(links_.begin(), links_.end(), is_stranger));
  if (strangers < options_.workers.size() + kSpare) return;
  links_.erase(std::find_if(links_.begin(), links_.end(), is_stranger));
}

void Loop::read_links() {
  // Handling a frame adds no links, so the list stays as it is until the end of the round.
  for (const auto& link : links_) {
    // The chief may have a thousand links, of which each beat makes one ready.
    if (!link->is_ready) continue;
    // Looked up before reading, so that everything a dead process has sent can still be read.
    const bool dead = link->peer_is_dead();
    link->flush();
    link->receive();
    while (const std::optional<Frame> frame = link->next_frame()) handle(*link, *frame);
    link->ended = dead || !link->open();
    if (link->ended && link->confirmed) handle_end(*link);
    if (link->ended && link.get() == uplink_) uplink_ = nullptr;
  }
  std::erase_if(links_, [](const auto& link) { return link->ended; });
}

void Loop::check_clocks() {
  const TimePoint now = Clock::now();
  // A process that was itself stopped or starved for long cannot judge the others' silence: they may have
  // been stopped with it. The shortest silence that settings allow is two beats, and rounds are a beat apart,
  // so what counts is by how much this round is late.
  const bool was_asleep = now - round_due_ > options_.silence / 4;
  for (const auto& link : links_) {
    if (was_asleep) link->last_heard = now;
    if (!judges_silence_of(*link) || now - link->last_heard < options_.silence) continue;
    const char* causes = link->reach() == Reach::kNetwork
                             ? "its host is down, the network is cut, or the process is stopped"
                             : "the process is stopped, or gets no processor time";
    raise(FrameKind::kGone, link->rank,
          fmt::format("{} is out of reach: no sign of life for {:.3g} s ({})", describe_worker(link->rank),
                      std::chrono::duration<double>(options_.silence).count(), causes),
          nullptr);
  }
  if (now >= next_beat_) {
    next_beat_ = now + options_.beat;
    for (const auto& link : links_) {
      if (link->confirmed && !link->has_unsent()) link->send({FrameKind::kBeat, -1, 0, {}});
    }
  }
  if (interruption_ends_at_ && now >= *interruption_ends_at_) {
    const Frame frame = *std::exchange(interruption_, std::nullopt);
    interruption_ends_at_.reset();
    raise(FrameKind::kGone, frame.subject,
          fmt::format("{} was ended by {}", describe_worker(frame.subject), signal_name(frame.signal)),
          nullptr);
  }
  if (end_at_ && now >= *end_at_) {
    end_at_.reset();
    if (dying_of_ != 0) SignalRelay::end_by(dying_of_);
    end_process(fault_ ? last_words_
                       : fmt::format("cohort: {} ends: {}", describe_worker(options_.rank), own_failure_));
  }
}

/// Null where nobody listens any more.
const std::string* Loop::secret_of(const Link& link) const {
  const auto listener = std::ranges::find(listeners_, link.reach(), &Listener::reach);
  return listener != listeners_.end() ? &listener->secret : nullptr;
}

void Loop::welcome(Link& link, const Frame& hello) {
  const std::string* const secret = secret_of(link);
  const std::optional<Nonce> nonce = nonce_from(hello.text);
  if (secret == nullptr || !nonce || link.proof) return link.close();
  link.proof.emplace(Side::kListener).hear(*nonce);
  std::string text(as_text(link.proof->own_nonce()));
  text.append(as_text(link.proof->prove(*secret)));
  link.send({FrameKind::kWelcome, options_.rank, 0, std::move(text)});
}

void Loop::admit(Link& link, const Frame& confirm) {
  const std::string* const secret = secret_of(link);
  const std::optional<Proof> proof = proof_from(confirm.text);
  const int rank = confirm.subject;
  const bool is_worker = rank >= 0 && static_cast<std::size_t>(rank) < options_.workers.size();
  // Of several connections from one worker, the first to be proven becomes the link.
  if (secret == nullptr || !link.proof || !proof || !is_worker || is_linked(rank) ||
      !link.proof->accepts(*proof, *secret, proven_text(rank)))
    return link.close();
  link.rank = rank;
  link.confirmed = true;
  link.send({FrameKind::kConfirmed, options_.rank, 0, {}});
  if (fault_) link.send(fault_frame_);
}

void Loop::handle_stranger(Link& link, const Frame& frame) {
  try {
    if (frame.kind == FrameKind::kHello) return welcome(link, frame);
    if (frame.kind == FrameKind::kConfirm) return admit(link, frame);
  } catch (const Error& e) {
    logging::warning("{} cannot prove to others who it is: {}", describe_worker(options_.rank), e.what());
  }
  link.close();
}

void Loop::handle(Link& link, const Frame& frame) {
  if (link.rank < 0) return handle_stranger(link, frame);
  switch (frame.kind) {
    case FrameKind::kBye:
      link.left = true;
      if (&link == uplink_)
        all_have_left();
      else
        leave_when_all_below_left();
      break;
    case FrameKind::kGone:
    case FrameKind::kFailed: raise(frame.kind, frame.subject, frame.text, &link); break;
    case FrameKind::kInterrupted: interrupted(frame, &link); break;
    case FrameKind::kNote: deliver(frame, &link); break;
    case FrameKind::kNoteToAll:
      forward(frame, &link);
      if (hear_note_) hear_note_(frame.text);
      break;
    case FrameKind::kHello:
    case FrameKind::kWelcome:
    case FrameKind::kConfirm:
    case FrameKind::kConfirmed:
    case FrameKind::kBeat: break;
  }
}

void Loop::handle_end(const Link& link) {
  // The uplink that was told of this worker's leave, and is not waited for, may go without a word.
  const bool owes_no_word = &link == uplink_ && told_uplink_ && !waits_for_chief_;
  if (link.left || owes_no_word) return;
  raise(FrameKind::kGone, link.rank,
        fmt::format("{} is gone: its process ended without leaving the session", describe_worker(link.rank)),
        &link);
}

void Loop::interrupted_by(int signal) {
  if (dying_of_ != 0) return;
  dying_of_ = signal;
  SignalRelay::speak_last_words();  // the fault may have become known after the handler ran
  forward({FrameKind::kInterrupted, options_.rank, signal, {}}, nullptr);
  if (!fault_ && own_failure_.empty()) {
    write_line(fmt::format("cohort: {} ends: interrupted by {}", describe_worker(options_.rank),
                           signal_name(signal)));
  }
  // Open MPI's launcher sends SIGKILL to all as soon as the first process has ended after its
  // SIGTERM. A moment later, all have had the time to speak; 100 ms were too short on busy cores.
  constexpr auto kTimeToSpeak = std::chrono::milliseconds(400);
  end_at_ = Clock::now() + kTimeToSpeak;
}

void Loop::interrupted(const Frame& frame, const Link* from) {
  if (interruption_ || fault_ || dying_of_ != 0) return;
  interruption_ = frame;
  interruption_ends_at_ = Clock::now() + options_.interrupt;
  forward(frame, from);
}

void Loop::raise(FrameKind kind, int subject, const std::string& message, const Link* from) {
  // The first fault is the cause, what follows its consequence.
  if (fault_ || !own_failure_.empty()) return;
  // After an interruption the whole job may be ending, so for a moment ends of processes mean nothing.
  if ((interruption_ || dying_of_ != 0) && kind == FrameKind::kGone) return;
  std::string host;
  if (subject >= 0 && static_cast<std::size_t>(subject) < options_.workers.size()) {
    host = options_.workers[static_cast<std::size_t>(subject)].host;
  }
  fault_ = std::make_unique<Error>(kind == FrameKind::kFailed ? ErrorCode::kAborted : ErrorCode::kUnavailable,
                                   message, ErrorOrigin{{}, subject, host});
  last_words_ = fmt::format("cohort: {} ends because {}{}", describe_worker(options_.rank), message,
                            where_explained(fault_->code()));
  last_line_ = last_words_ + '\n';
  // Set before other workers are told of the fault: one that ends because of it may cause the launcher's
  // signal.
  if (signals_) signals_->set_last_words(last_line_.c_str());
  fault_frame_ = {kind, subject, 0, message};
  forward(fault_frame_, from);
  if (dying_of_ != 0) return SignalRelay::speak_last_words();
  record_->publish(*fault_);
  end_later();
  if (leaving_ && !std::exchange(left_is_decided_, true)) left_.set_value(false);
}

void Loop::leave_when_all_below_left() {
  if (!leaving_ || left_is_decided_) return;
  // Of a fault that is not published this process ends by a signal instead.
  if (record_->fault() != nullptr) {
    left_is_decided_ = true;
    left_.set_value(false);
    return;
  }
  const auto still_here = [this](const auto& link) {
    return link.get() != uplink_ && link->confirmed && !link->left;
  };
  if (std::any_of(links_.begin(), links_.end(), still_here)) return;
  if (uplink_ == nullptr) return all_have_left();
  if (std::exchange(told_uplink_, true)) return;
  for (const auto& link : links_) {
    if (link.get() == uplink_) link->send({FrameKind::kBye, options_.rank, 0, {}});
  }
  if (!waits_for_chief_) {
    left_is_decided_ = true;
    left_.set_value(true);
  }
}

void Loop::all_have_left() {
  for (const auto& link : links_) {
    if (link.get() != uplink_) link->send({FrameKind::kBye, options_.rank, 0, {}});
    link->left = true;
  }
  if (!std::exchange(left_is_decided_, true)) left_.set_value(true);
}

void Loop::forward(const Frame& frame, const Link* except) {
  for (const auto& link : links_) {
    if (link.get() != except && link->confirmed) link->send(frame);
  }
}

void Loop::deliver(const Frame& note, const Link* from) {
  if (note.subject == options_.rank) {
    if (hear_note_) hear_note_(note.text);
    return;
  }
  Link* const next = link_towards(note.subject);
  // Back to where it came from: a worker that has no link.
  if (next != nullptr && next != from && next->confirmed) next->send(note);
}

/// To the worker itself, down to the one of its node that has links to the others there, or up. May be null.
Link* Loop::link_towards(int worker) const {
  if (worker < 0 || static_cast<std::size_t>(worker) >= options_.workers.size()) return nullptr;
  const auto node_of = [this](int rank) { return options_.workers[static_cast<std::size_t>(rank)].node; };
  Link* next = uplink_;
  for (const auto& link : links_) {
    if (link->rank == worker) return link.get();
    if (link.get() != uplink_ && link->rank >= 0 && node_of(link->rank) == node_of(worker)) next = link.get();
  }
  return next;
}

void Loop::end_later() {
  if (options_.grace) end_at_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(*options_.grace);
}

void Loop::end_process(const std::string& line) {
  if (options_.end_process) return options_.end_process(line);
  write_line(line);
  // The program's output should not be lost, but another thread may hold the stream for ever.
  if (::ftrylockfile(stdout) == 0) {
    ::fflush_unlocked(stdout);
    ::funlockfile(stdout);
  }
  ::_exit(exit_status_after(fault_.get()));
}

std::string Loop::describe_worker(int rank) const {
  if (rank < 0 || static_cast<std::size_t>(rank) >= options_.workers.size())
    return fmt::format("worker {}", rank);
  return describe(options_.workers[static_cast<std::size_t>(rank)]);
}

bool Loop::is_linked(int rank) const {
  return rank == options_.rank ||
         std::any_of(links_.begin(), links_.end(), [&](const auto& link) { return link->rank == rank; });
}

}  // namespace cohort::watch
