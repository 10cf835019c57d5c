#include "job_observer.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>

#include "base/process_state.h"
#include "cluster/peer_watch.h"
#include "collective/record/record_reader.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// The first reading is a start from which the next one counts.
constexpr auto kToFirstReading = 5ms;
constexpr auto kBetweenReadings = 50ms;

/// How long the end of a communicator may take for its timeline and its numbers.
constexpr auto kTimeForLastCalls = 100ms;

/// Between looks at send queues, which may take longer where there are many connections: this many times as
/// long.
constexpr auto kBetweenLooks = 10ms;
constexpr int kTimesTheLook = 200;

/// What one note may hold, and what all nodes together tell the chief of each communicator in one reading.
constexpr std::size_t kCallsInNote = 40;
constexpr std::size_t kCallsToldByAll = 4096;
constexpr std::size_t kMostCallsTold = 64;

/// A node's clock is taken to be as far from the chief's as the fastest of so many notes shows it.
constexpr std::size_t kNotesForClock = 50;

/// Somebody is named again when it has become this much slower.
constexpr double kMuchSlower = 2;

/// Of the records for one look, so that it shows members that are in step as such.
constexpr int kMostReadings = 3;

/// A note is about the calls that follow it, or about send queues.
struct NoteHead {
  std::int64_t now = 0;  ///< of the node's steady clock
  QueueLooks looks = {};
  std::int32_t worker = 0;
  std::int32_t node = 0;
  std::int32_t nodes = 1;
  std::int32_t shares_cores = 0;
  std::int32_t calls = 0;
  std::array<char, 48> communicator{};
};
static_assert(sizeof(NoteHead) + kCallsInNote * sizeof(CallArrivals) <= PeerWatch::kLongestNote);

std::int64_t steady_now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// Keeps so many calls at most; of the same calls all nodes keep the same ones.
void thin_out(std::vector<CallArrivals>& calls, std::size_t most) {
  for (std::uint64_t mask = 1; calls.size() > most; mask = 2 * mask + 1) {
    std::erase_if(calls, [&](const CallArrivals& call) {
      return (Fingerprint().add(call.number).value() & mask) != 0;
    });
  }
}

/// Fills in what the records have; returns the least and the greatest number of collectives begun.
std::pair<std::uint64_t, std::uint64_t> read_members(const ObservedGroup& group,
                                                     std::vector<ReportedMember>& members) {
  const StampScale scale = StampScale::at_this_moment();
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  for (const MemberRecord* record : group.records) {
    ReportedMember member;
    if (!read_record(*record, scale, member)) continue;
    const auto rank = static_cast<std::size_t>(member.rank);
    if (rank >= members.size()) continue;
    member.host = members[rank].host;
    member.process = record->process.pid == ::getpid() ? ProcessState::kRunning : state_of(record->process);
    least = std::min(least, member.begun);
    most = std::max(most, member.begun);
    members[rank] = std::move(member);
  }
  return {std::min(least, most), most};
}

}  // namespace

JobObserver::JobObserver(JobObserverOptions options) : options_(std::move(options)) {
  const WorkerInfo& self = options_.workers[static_cast<std::size_t>(options_.rank)];
  if (options_.numbers.wanted())
    numbers_ = std::make_unique<NumbersKeeper>(options_.numbers, options_.workers, options_.rank,
                                               [this](std::string note) { tell_chief(std::move(note)); });
  if (numbers_ && numbers_->writes()) start_thread();
  looks_from_outside_ = std::make_unique<LookServer>(LookServerOptions{.job = options_.job,
                                                                       .workers = options_.workers,
                                                                       .rank = options_.rank,
                                                                       .look = [this] { return look(); },
                                                                       .tell = options_.tell,
                                                                       .tell_all = options_.tell_all});
  // The first of a node draws for all of it, whoever is the first member of a communicator.
  if (options_.timeline.empty() || self.local_rank != 0) return;
  try {
    start_timeline();
  } catch (const Error& error) {
    logging::warning("{}", error.what());
  }
}

bool JobObserver::is_on_one_node() const {
  return std::ranges::max(options_.workers, {}, &WorkerInfo::node).node == 0;
}

std::string JobObserver::part_of_timeline(int worker) const {
  return is_on_one_node() ? options_.timeline : fmt::format("{}.worker-{}", options_.timeline, worker);
}

void JobObserver::start_timeline() {
  timeline_ = std::make_unique<Timeline>(part_of_timeline(options_.rank));
  const int node = options_.workers[static_cast<std::size_t>(options_.rank)].node;
  for (const WorkerInfo& worker : options_.workers) {
    if (worker.node == node) timeline_->add_worker(worker);
  }
}

/// Of the nodes whose files can be seen here.
void JobObserver::merge_timelines() {
  std::vector<std::string> parts;
  std::vector<std::int64_t> offsets;
  for (const WorkerInfo& worker : options_.workers) {
    const std::string part = part_of_timeline(worker.rank);
    if (worker.local_rank != 0 || !std::filesystem::exists(part)) continue;
    parts.push_back(part);
    const auto known = clock_offsets_.find(worker.node);
    offsets.push_back(known == clock_offsets_.end() ? 0 : std::ranges::min(known->second));
  }
  cohort::merge_timelines(parts, offsets, options_.timeline);
  for (const std::string& part : parts) std::filesystem::remove(part);
}

JobObserver::~JobObserver() {
  fall_silent();
  stop();
}

/// Otherwise records are looked at only when somebody asks.
bool JobObserver::reads() const noexcept {
  return options_.name_stragglers || timeline_ != nullptr || numbers_ != nullptr;
}

void JobObserver::add(ObservedGroup group) {
  std::set<int> nodes;
  for (const int worker : group.workers)
    nodes.insert(options_.workers[static_cast<std::size_t>(worker)].node);
  if (group.workers.size() < 2 && timeline_ == nullptr && numbers_ == nullptr) return;
  const std::lock_guard lock(watching_);
  if (stopping_) return;
  const ArrivalSource source{group.communicator,
                             options_.workers[static_cast<std::size_t>(options_.rank)].node,
                             static_cast<int>(nodes.size()), group.shares_cores};
  GroupTally* const tally = numbers_ ? numbers_->begin(group) : nullptr;
  const void* const id = group.id;
  ArrivalReader reader(group);
  watched_.insert_or_assign(id, Watched{std::move(group), std::move(reader), source, tally});
  if (reads() && !thread_.joinable()) start_thread();
}

void JobObserver::start_thread() {
  // Signals are for the program's own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void JobObserver::remove(const void* id) noexcept {
  const std::lock_guard lock(watching_);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  read(found->second);
  if (timeline_ != nullptr || numbers_ != nullptr) read_last_calls(found->second);
  if (numbers_) numbers_->finish(found->second.tally);
  watched_.erase(found);
}

/// Other members may be about to note the end of the calls that this one has finished.
void JobObserver::read_last_calls(Watched& watched) {
  const Deadline deadline = Deadline::after(kTimeForLastCalls);
  while (watched.reader.misses_ends() && !deadline.expired()) {
    std::this_thread::sleep_for(1ms);
    read(watched);
  }
}

void JobObserver::stop() noexcept {
  {
    const std::lock_guard lock(watching_);
    if (std::exchange(stopping_, true)) return;
    read_all();
    watched_.clear();
    if (numbers_) numbers_->stop();
    if (timeline_) timeline_->finish();
  }
  stop_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void JobObserver::run() {
  std::unique_lock lock(watching_);
  auto next_reading = Clock::now() + kToFirstReading;
  while (true) {
    const bool over_network =
        std::ranges::any_of(watched_, [](const auto& entry) { return entry.second.source.nodes > 1; });
    const auto next = over_network ? std::min(next_reading, next_look_) : next_reading;
    if (stop_.wait_until(lock, next, [this] { return stopping_; })) return;
    const auto now = Clock::now();
    if (over_network && now >= next_look_) look_at_queues();
    if (now < next_reading) continue;
    next_reading = now + kBetweenReadings;
    read_all();
    if (!numbers_) continue;
    numbers_->tell_if_due();
    // A file system may be slow, and members that leave wait for this lock.
    lock.unlock();
    numbers_->write_if_due();
    lock.lock();
  }
}

void JobObserver::read_all() {
  for (auto& [id, watched] : watched_) read(watched);
  tell_looks();
}

void JobObserver::look_at_queues() {
  const auto begin = Clock::now();
  const bool moves_data = std::ranges::any_of(watched_, [](auto& entry) {
    return entry.second.source.nodes > 1 && entry.second.reader.moves_data_alike();
  });
  if (moves_data) {
    const std::uint64_t bytes = queues_.bytes();
    looks_.add({.looks = 1, .full = bytes >= kFullQueue ? 1u : 0u, .bytes = bytes});
  }
  const auto end = Clock::now();
  next_look_ = end + std::max<Clock::duration>(kBetweenLooks, kTimesTheLook * (end - begin));
}

void JobObserver::tell_looks() {
  if (looks_.looks == 0) return;
  const QueueLooks looks = std::exchange(looks_, {});
  if (options_.rank == 0) return judge(0, looks);
  NoteHead head{.now = steady_now(), .looks = looks, .worker = options_.rank};
  tell_chief({reinterpret_cast<const char*>(&head), sizeof head});
}

void JobObserver::read(Watched& watched) {
  const StampScale scale = StampScale::at_this_moment();
  const std::int64_t now = steady_now();
  ArrivalReader::Take take;
  if (timeline_ != nullptr || watched.tally != nullptr) {
    take = [&](const ObservedCall& call) {
      if (timeline_ != nullptr) timeline_->add(watched.source.communicator, call);
      if (watched.tally != nullptr) watched.tally->add(call);
    };
  }
  std::vector<CallArrivals> calls = watched.reader.read(scale, now, take);
  const std::vector<ObservedMessage> messages = watched.reader.take_messages();
  if (watched.tally != nullptr) watched.tally->end_reading(messages, scale.seconds_per_tick);
  if (calls.empty()) return;
  if (watched.source.nodes > 1) {
    const std::size_t share = kCallsToldByAll / static_cast<std::size_t>(watched.source.nodes);
    thin_out(calls, std::clamp<std::size_t>(share, 4, kMostCallsTold));
  }
  if (options_.rank == 0) return judge(watched.source, calls, 0);
  tell(watched.source, calls, now);
}

void JobObserver::tell(const ArrivalSource& source, std::span<const CallArrivals> calls, std::int64_t now) {
  while (!calls.empty()) {
    const auto some = calls.first(std::min(calls.size(), kCallsInNote));
    calls = calls.subspan(some.size());
    NoteHead head{.now = now,
                  .worker = options_.rank,
                  .node = source.node,
                  .nodes = source.nodes,
                  .shares_cores = source.shares_cores ? 1 : 0,
                  .calls = static_cast<std::int32_t>(some.size())};
    source.communicator.copy(head.communicator.data(), head.communicator.size() - 1);
    std::string note(sizeof head + some.size_bytes(), '\0');
    std::memcpy(note.data(), &head, sizeof head);
    std::memcpy(note.data() + sizeof head, some.data(), some.size_bytes());
    tell_chief(std::move(note));
  }
}

void JobObserver::hear(std::string_view note) {
  if (looks_from_outside_->hear(note) || options_.rank != 0) return;
  if (numbers_ && numbers_->hear(note)) return;
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
  if (head.looks.looks > 0) judge(head.worker, head.looks);
  judge({head.communicator.data(), head.node, head.nodes, head.shares_cores != 0}, calls, offset);
}

void JobObserver::judge(const ArrivalSource& source, std::span<const CallArrivals> calls,
                        std::int64_t clock_offset) {
  const std::lock_guard lock(judging_);
  for (CallArrivals call : calls) {
    call.last_at += clock_offset;
    call.second_at += clock_offset;
    if (judge_.add(source, call)) link_judge_.judge_looks(judge_.one_was_late());
  }
  say_who_is_late();
  say_whose_link_is_slow();
}

void JobObserver::judge(int worker, const QueueLooks& looks) {
  const std::lock_guard lock(judging_);
  link_judge_.add(worker, looks);
}

void JobObserver::say_who_is_late() {
  const std::optional<Straggler>& present = judge_.present();
  if (!present || !options_.name_stragglers) return;
  const bool is_news = !said_ || said_->worker != present->worker || said_->cause != present->cause ||
                       present->mean_lateness > kMuchSlower * said_->mean_lateness;
  if (!is_news) return;
  said_ = present;
  options_.say(present->cause, fmt::format("{} {}", name_of(present->worker), to_string(*present)));
}

void JobObserver::say_whose_link_is_slow() {
  const std::optional<SlowLink>& link = link_judge_.present();
  if (!link || !options_.name_stragglers || std::exchange(said_link_of_, link->worker) == link->worker)
    return;
  options_.say(LateFrom::kMovingData, fmt::format("{} {}", name_of(link->worker), to_string(*link)));
}

JobReport JobObserver::report_on(const ObservedGroup& group) const {
  JobReport report{.communicator = group.communicator,
                   .host = options_.workers[static_cast<std::size_t>(options_.rank)].host,
                   .worker = options_.rank};
  for (const int worker : group.workers)
    report.members.push_back({.rank = static_cast<int>(report.members.size()),
                              .worker = worker,
                              .host = options_.workers[static_cast<std::size_t>(worker)].host});
  // The first members may have gone on while the last were read.
  for (int i = 0; i < kMostReadings; ++i) {
    const auto [least, most] = read_members(group, report.members);
    if (most <= least + 1) break;
  }
  return report;
}

JobLook JobObserver::look() {
  JobLook look{.job = options_.job,
               .chief = options_.workers.front().pid,
               .seconds = std::chrono::duration<double>(Clock::now() - begin_).count(),
               .restarts = options_.restarts,
               .nodes = std::ranges::max(options_.workers, {}, &WorkerInfo::node).node + 1,
               .slow = slow_at_present()};
  std::map<int, ProcessIdentity> processes;
  const std::lock_guard lock(watching_);
  for (const auto& [id, watched] : watched_) {
    CommunicatorLook communicator{.report = report_on(watched.group)};
    const auto first = std::ranges::find(communicator.report.members, true, &ReportedMember::is_readable);
    if (first != communicator.report.members.end()) communicator.rate = rate_of(first->calls);
    std::ranges::for_each(communicator.report.members, keep_latest_calls);
    look.communicators.push_back(std::move(communicator));
    for (const MemberRecord* record : watched.group.records) {
      if (record->rank.load(std::memory_order_acquire) >= 0) processes[record->worker] = record->process;
    }
  }
  std::ranges::sort(look.communicators, {},
                    [](const CommunicatorLook& communicator) { return communicator.report.communicator; });
  for (const auto& [worker, process] : processes) {
    if (worker < 0 || static_cast<std::size_t>(worker) >= options_.workers.size()) continue;
    const ProcessMemory memory = memory_of(process);
    look.workers.push_back({worker, options_.workers[static_cast<std::size_t>(worker)].host, process.pid,
                            memory.resident_bytes, memory.peak_bytes});
  }
  return look;
}

void JobObserver::fall_silent() noexcept { looks_from_outside_->stop(); }

void JobObserver::conclude() {
  fall_silent();
  if (options_.rank != 0) return;
  if (numbers_) numbers_->conclude();
  const std::lock_guard lock(judging_);
  if (timeline_ && !is_on_one_node()) {
    try {
      merge_timelines();
    } catch (const std::exception& error) {
      logging::warning("the timelines of the nodes are not made one: {}", error.what());
    }
  }
  if (!options_.name_stragglers) return;
  const std::optional<Straggler> straggler = judge_.of_all_calls();
  const bool one_was_late = straggler && straggler->cause != LateFrom::kWaitingForCore;
  const std::optional<SlowLink> link = one_was_late ? std::nullopt : link_judge_.of_all_looks();
  if (link)
    options_.say(LateFrom::kMovingData,
                 fmt::format("in the whole run, {} {}", name_of(link->worker), to_string(*link)));
  if (!straggler) return;
  options_.say(
      straggler->cause,
      fmt::format("in the whole run, {} {}; the others waited {:.0f} % of the time for it",
                  name_of(straggler->worker), to_string(*straggler), 100 * straggler->share_of_time));
}

std::vector<std::string> JobObserver::slow_at_present() {
  std::vector<std::string> slow;
  const std::lock_guard lock(judging_);
  if (const auto& straggler = judge_.present())
    slow.push_back(fmt::format("{} {}", name_of(straggler->worker), to_string(*straggler)));
  if (const auto& link = link_judge_.present())
    slow.push_back(fmt::format("{} {}", name_of(link->worker), to_string(*link)));
  return slow;
}

std::string JobObserver::name_of(int worker) const {
  const auto index = static_cast<std::size_t>(worker);
  return index < options_.workers.size() ? describe(options_.workers[index])
                                         : fmt::format("worker {}", worker);
}

}  // namespace cohort
