#include "straggler_watch.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// The first reading is a start from which the next one counts.
constexpr auto kToFirstReading = 5ms;
constexpr auto kBetweenReadings = 50ms;

/// What one note may hold, and what all nodes together tell the chief of each communicator in one reading.
constexpr std::size_t kCallsInNote = 40;
constexpr std::size_t kCallsToldByAll = 4096;
constexpr std::size_t kMostCallsTold = 64;

/// A node's clock is taken to be as far from the chief's as the fastest of so many notes shows it.
constexpr std::size_t kNotesForClock = 50;

/// Somebody is named again when it has become this much slower.
constexpr double kMuchSlower = 2;

struct NoteHead {
  std::int64_t now = 0;  ///< of the node's steady clock
  std::int32_t node = 0;
  std::int32_t nodes = 1;
  std::int32_t shares_cores = 0;
  std::int32_t calls = 0;
  std::array<char, 48> communicator{};
};

std::int64_t steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Keeps so many calls at most; of the same calls all nodes keep the same ones.
void thin_out(std::vector<CallArrivals>& calls, std::size_t most) {
  for (std::uint64_t mask = 1; calls.size() > most; mask = 2 * mask + 1) {
    std::erase_if(calls,
                  [&](const CallArrivals& call) { return (Fingerprint().add(call.number).value() & mask) != 0; });
  }
}

}  // namespace

StragglerWatch::StragglerWatch(StragglerWatchOptions options) : options_(std::move(options)) {}

StragglerWatch::~StragglerWatch() { stop(); }

void StragglerWatch::add(ObservedGroup group) {
  std::set<int> nodes;
  for (const int worker : group.workers) nodes.insert(options_.workers[static_cast<std::size_t>(worker)].node);
  if (group.workers.size() < 2) return;
  const std::lock_guard lock(watching_);
  if (stopping_) return;
  const ArrivalSource source{group.communicator, options_.workers[static_cast<std::size_t>(options_.rank)].node,
                             static_cast<int>(nodes.size()), group.shares_cores};
  watched_.insert_or_assign(group.id, Watched{ArrivalReader(group), source});
  if (thread_.joinable()) return;
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StragglerWatch::remove(const void* id) noexcept {
  const std::lock_guard lock(watching_);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  read(found->second);
  watched_.erase(found);
}

void StragglerWatch::stop() noexcept {
  {
    const std::lock_guard lock(watching_);
    if (std::exchange(stopping_, true)) return;
    for (auto& [id, watched] : watched_) read(watched);
    watched_.clear();
  }
  stop_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StragglerWatch::run() {
  std::unique_lock lock(watching_);
  auto pause = kToFirstReading;
  while (!stop_.wait_for(lock, pause, [this] { return stopping_; })) {
    for (auto& [id, watched] : watched_) read(watched);
    pause = kBetweenReadings;
  }
}

void StragglerWatch::read(Watched& watched) {
  const StampScale scale = StampScale::at_this_moment();
  const std::int64_t now = steady_now();
  std::vector<CallArrivals> calls = watched.reader.read(scale, now);
  if (calls.empty()) return;
  if (watched.source.nodes > 1) {
    const std::size_t share = kCallsToldByAll / static_cast<std::size_t>(watched.source.nodes);
    thin_out(calls, std::clamp<std::size_t>(share, 4, kMostCallsTold));
  }
  if (options_.rank == 0) return judge(watched.source, calls, 0);
  tell(watched.source, calls, now);
}

void StragglerWatch::tell(const ArrivalSource& source, std::span<const CallArrivals> calls, std::int64_t now) {
  while (!calls.empty()) {
    const auto some = calls.first(std::min(calls.size(), kCallsInNote));
    calls = calls.subspan(some.size());
    NoteHead head{.now = now,
                  .node = source.node,
                  .nodes = source.nodes,
                  .shares_cores = source.shares_cores ? 1 : 0,
                  .calls = static_cast<std::int32_t>(some.size())};
    source.communicator.copy(head.communicator.data(), head.communicator.size() - 1);
    std::string note(sizeof head + some.size_bytes(), '\0');
    std::memcpy(note.data(), &head, sizeof head);
    std::memcpy(note.data() + sizeof head, some.data(), some.size_bytes());
    options_.tell_chief(std::move(note));
  }
}

void StragglerWatch::hear(std::string_view note) {
  NoteHead head;
  if (note.size() < sizeof head) return;
  std::memcpy(&head, note.data(), sizeof head);
  head.communicator.back() = '\0';
  note.remove_prefix(sizeof head);
  if (head.calls < 0 || note.size() != static_cast<std::size_t>(head.calls) * sizeof(CallArrivals)) return;
  std::vector<CallArrivals> calls(static_cast<std::size_t>(head.calls));
  std::memcpy(calls.data(), note.data(), note.size());
  std::int64_t offset = 0;
  {
    const std::lock_guard lock(judging_);
    std::deque<std::int64_t>& offsets = clock_offsets_[head.node];
    offsets.push_back(steady_now() - head.now);
    if (offsets.size() > kNotesForClock) offsets.pop_front();
    offset = std::ranges::min(offsets);
  }
  judge({head.communicator.data(), head.node, head.nodes, head.shares_cores != 0}, calls, offset);
}

void StragglerWatch::judge(const ArrivalSource& source, std::span<const CallArrivals> calls,
                           std::int64_t clock_offset) {
  const std::lock_guard lock(judging_);
  for (CallArrivals call : calls) {
    call.last_at += clock_offset;
    call.second_at += clock_offset;
    judge_.add(source, call);
  }
  const std::optional<Straggler>& present = judge_.present();
  if (!present) return;
  const bool is_news = !said_ || said_->worker != present->worker || said_->cause != present->cause ||
                       present->mean_lateness > kMuchSlower * said_->mean_lateness;
  if (!is_news) return;
  said_ = present;
  options_.say(present->cause, fmt::format("{} {}", name_of(*present), to_string(*present)));
}

void StragglerWatch::conclude() {
  const std::lock_guard lock(judging_);
  const std::optional<Straggler> straggler = judge_.of_all_calls();
  if (!straggler) return;
  options_.say(straggler->cause,
               fmt::format("in the whole run, {} {}; the others waited {:.0f} % of the time for it",
                           name_of(*straggler), to_string(*straggler), 100 * straggler->share_of_time));
}

std::string StragglerWatch::name_of(const Straggler& straggler) const {
  const auto worker = static_cast<std::size_t>(straggler.worker);
  return worker < options_.workers.size() ? describe(options_.workers[worker])
                                          : fmt::format("worker {}", straggler.worker);
}

}  // namespace cohort
