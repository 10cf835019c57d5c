#include "look_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "base/quiet_thread.h"
#include "cluster/peer_watch.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// Processes that read records, but are not the first of their node, may answer or not: they have so long
/// after the first ones.
constexpr auto kTimeForOthers = 50ms;

/// A process that can open nothing more tries again to take a client in after so long; the client waits.
constexpr auto kToNextTry = 50ms;

/// A client that takes nothing is given up.
constexpr auto kTimeToTake = 1s;

struct LookNoteHead {
  static constexpr std::uint64_t kMark = 0x6b6f6f6c626f6aULL;  // tells these notes from others

  std::uint64_t mark = kMark;
  std::int32_t asker = 0;
  std::uint32_t question = 0;
  std::int32_t from = 0;
  std::uint32_t piece = 0;
  std::uint32_t pieces = 0;  ///< of the answer; 0: this is the question
  std::uint32_t unused = 0;
};

constexpr std::size_t kPieceBytes = PeerWatch::kLongestNote - sizeof(LookNoteHead);

/// Of an answer; more would be no answer.
constexpr std::uint32_t kMostPieces = 1 << 16;

std::string note_of(const LookNoteHead& head, std::string_view text = {}) {
  std::string note(sizeof head, '\0');
  std::memcpy(note.data(), &head, sizeof head);
  return note.append(text);
}

void send_fully(int socket, std::string_view text) {
  pollfd room{socket, POLLOUT, 0};
  // Whoever takes nothing of it for so long has given up, or is given up.
  while (!text.empty() && watch::poll_until({&room, 1}, std::chrono::steady_clock::now() + kTimeToTake)) {
    const ssize_t sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EINTR && errno != EAGAIN) return;
  }
}

}  // namespace

LookServer::LookServer(LookServerOptions options) : options_(std::move(options)) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    logging::warning("{} does not answer cohort-info --job: pipe2: {}", describe(self()),
                     std::strerror(errno));
    stopping_ = true;
    return;
  }
  wake_.reset(ends[0]);
  to_wake_.reset(ends[1]);
  if (self().local_rank != 0) return;
  try {
    listener_ = listen_as({options_.job, options_.workers.front().pid, ::getpid()});
  } catch (const Unavailable& error) {
    logging::warning("{} cannot be looked at by cohort-info --job: {}", describe(self()), error.what());
    return;
  }
  start_thread();
}

LookServer::~LookServer() { stop(); }

const WorkerInfo& LookServer::self() const {
  return options_.workers[static_cast<std::size_t>(options_.rank)];
}

void LookServer::start_thread() {
  thread_ = start_quiet_thread([this] { run(); });
}

void LookServer::wake() const {
  const char byte = 0;
  // A pipe that is full wakes the thread just as well.
  [[maybe_unused]] const ssize_t written = ::write(to_wake_.get(), &byte, 1);
}

bool LookServer::hear(std::string_view note) {
  LookNoteHead head;
  if (note.size() < sizeof head) return false;
  std::memcpy(&head, note.data(), sizeof head);
  if (head.mark != LookNoteHead::kMark) return false;
  const std::lock_guard lock(mutex_);
  if (stopping_) return true;
  notes_.emplace_back(note);
  if (!thread_.joinable()) start_thread();
  wake();
  return true;
}

void LookServer::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  listener_.reset();  // its name is free for another job of this process
}

void LookServer::run() {
  while (true) {
    wait_for_events();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
    }
    try {
      accept_clients();
      read_notes();
      send_to_clients();
    } catch (const std::exception& error) {
      logging::debug("a look at the job failed: {}", error.what());
      clients_.clear();
    }
  }
}

void LookServer::wait_for_events() {
  std::array<pollfd, 2> polled{{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
  auto until = Clock::time_point::max();
  for (const auto& [question, client] : clients_) until = std::min(until, client.until);
  watch::poll_until(polled, until);
  std::array<char, 64> ignored;
  while (::read(wake_.get(), ignored.data(), ignored.size()) > 0) {
  }
}

void LookServer::accept_clients() {
  watch::Arrivals arrivals = watch::accept_all(listener_);
  for (watch::Fd& socket : arrivals.sockets) {
    Client client{
        .socket = std::move(socket), .look = options_.look(), .until = Clock::now() + options_.limit};
    JobLook all;
    for (const WorkerInfo& worker : options_.workers) {
      all.workers.push_back({.worker = worker.rank, .host = worker.host, .pid = worker.pid});
      if (worker.local_rank == 0 && worker.rank != options_.rank) client.missing.insert(worker.rank);
    }
    merge(client.look, std::move(all));
    if (client.missing.empty()) client.until = Clock::now() + kTimeForOthers;
    const std::uint32_t question = questions_++;
    clients_.emplace(question, std::move(client));
    options_.tell_all(note_of({.asker = options_.rank, .question = question, .from = options_.rank}));
  }
  // The client stays in the listener's queue, which would end each wait at once.
  if (arrivals.out_of_room) std::this_thread::sleep_for(kToNextTry);
}

void LookServer::read_notes() {
  std::vector<std::string> notes;
  {
    const std::lock_guard lock(mutex_);
    notes.swap(notes_);
  }
  for (const std::string_view note : notes) {
    LookNoteHead head;
    std::memcpy(&head, note.data(), sizeof head);
    if (head.pieces == 0) {
      answer(head.asker, head.question);
      continue;
    }
    const auto client = clients_.find(head.question);
    if (client == clients_.end() || head.pieces > kMostPieces || head.piece >= head.pieces) continue;
    take_piece(client->second, head.from, head.piece, head.pieces, note.substr(sizeof head));
  }
}

void LookServer::answer(int asker, std::uint32_t question) {
  const JobLook look = options_.look();
  if (look.communicators.empty() && self().local_rank != 0) return;
  const std::string text = to_json(look);
  const std::size_t pieces = (text.size() + kPieceBytes - 1) / kPieceBytes;
  for (std::size_t i = 0; i < pieces; ++i) {
    const LookNoteHead head{.asker = asker,
                            .question = question,
                            .from = options_.rank,
                            .piece = static_cast<std::uint32_t>(i),
                            .pieces = static_cast<std::uint32_t>(pieces)};
    options_.tell(asker, note_of(head, std::string_view(text).substr(i * kPieceBytes, kPieceBytes)));
  }
}

void LookServer::take_piece(Client& client, int worker, std::size_t index, std::size_t pieces,
                            std::string_view text) {
  Answer& answer = client.answers[worker];
  if (answer.pieces.empty()) {
    answer.pieces.resize(pieces);
    answer.pieces_left = pieces;
  }
  if (answer.pieces.size() != pieces || !answer.pieces[index].empty()) return;
  answer.pieces[index] = text;
  if (--answer.pieces_left > 0) return;
  std::string whole;
  for (const std::string& piece : answer.pieces) whole += piece;
  merge(client.look, look_from_json(whole));
  if (client.missing.erase(worker) > 0 && client.missing.empty())
    client.until = Clock::now() + kTimeForOthers;
}

void LookServer::send_to_clients() {
  const Clock::time_point now = Clock::now();
  for (auto& [question, client] : clients_) {
    if (now < client.until) continue;
    for (const int worker : client.missing)
      client.look.silent.push_back(describe(options_.workers[static_cast<std::size_t>(worker)]));
    send_fully(client.socket.get(), to_json(client.look));
  }
  std::erase_if(clients_, [&](const auto& entry) { return now >= entry.second.until; });
}

}  // namespace cohort
