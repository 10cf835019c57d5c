#include "job_observer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>

#include "base/quiet_thread.h"
#include "base/system_calls.h"
#include "cluster/job_socket.h"
#include "cluster/peer_watch.h"
#include "collective/record/call_record.h"

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

/// While the chief's clock is not known, nothing is read for so long at most.
constexpr auto kTimeForClock = 1s;
constexpr auto kTimeForClockAtEnd = 100ms;

/// Of the records for one look, so that it shows members that are in step as such.
constexpr int kMostReadings = 3;

/// A note is about the calls that follow it, or about send queues.
struct ArrivalsNoteHead {
  QueueLooks looks = {};
  std::int32_t worker = 0;
  std::int32_t node = 0;
  std::int32_t nodes = 1;
  std::int32_t shares_cores = 0;
  std::int32_t calls = 0;
  std::array<char, 48> communicator{};
};
static_assert(sizeof(ArrivalsNoteHead) + kCallsInNote * sizeof(CallArrivals) <= PeerWatch::kLongestNote);

/// Begins the notes that tell who is slow, a line each.
constexpr std::string_view kSlowMark = "cohort: slow\n";

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

std::shared_ptr<JobObserver> JobObserver::of_job(std::vector<WorkerInfo> workers, int rank, PeerWatch* watch,
                                                 bool names_stragglers) {
  const Config& settings = config();
  const bool wants_numbers = settings.run_numbers() || !settings.prometheus().empty();
  if (watch == nullptr && settings.timeline().empty() && !wants_numbers) return nullptr;
  JobObserverOptions options{
      .rank = rank,
      .name_stragglers = settings.is_set("COHORT_STRAGGLERS") ? settings.stragglers() : names_stragglers,
      .timeline = settings.timeline(),
      .numbers = {settings.run_numbers(), settings.prometheus()},
      .job = job_name(workers.front().pid),
      .restarts = settings.restarts()};
  options.workers = std::move(workers);
  // Without a watch there is nobody to tell.
  options.tell = [watch](int worker, std::string note) {
    if (watch != nullptr) watch->tell(worker, std::move(note));
  };
  options.tell_all = [watch](std::string note) {
    if (watch != nullptr) watch->tell_all(std::move(note));
  };
  options.say = [](LateFrom cause, const std::string& line) {
    // That is no fault of the program, and no news where there are more workers than cores.
    if (cause == LateFrom::kWaitingForCore)
      logging::info("{}", line);
    else
      logging::warning("{}", line);
  };
  auto observer = std::make_shared<JobObserver>(std::move(options));
  if (watch != nullptr) watch->hear_notes([observer](std::string_view note) { observer->hear(note); });
  return observer;
}

JobObserver::JobObserver(JobObserverOptions options)
    : options_(std::move(options)), clock_(options_.rank, self().node == 0, options_.tell) {
  if (options_.rank == 0 && options_.name_stragglers)
    judge_ = std::make_unique<SlownessJudge>(
        SlownessJudgeOptions{options_.workers, options_.say,
                             [this](const std::vector<std::string>& lines) { tell_all_who_is_slow(lines); }});
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
  if (options_.timeline.empty()) return;
  const std::lock_guard lock(watching_);
  timeline_ = std::make_unique<JobTimeline>(options_.timeline, options_.workers, options_.rank, clock_,
                                            [this](std::string note) { tell_chief(std::move(note)); });
  if (!thread_.joinable()) start_thread();
}

const WorkerInfo& JobObserver::self() const {
  return options_.workers[static_cast<std::size_t>(options_.rank)];
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
  if (group.workers.size() < 2 && drawn() == nullptr && numbers_ == nullptr) return;
  const std::lock_guard lock(watching_);
  if (stopping_) return;
  const ArrivalSource source{group.communicator, self().node, static_cast<int>(nodes.size()),
                             group.shares_cores};
  GroupTally* const tally = numbers_ ? numbers_->begin(group) : nullptr;
  const void* const id = group.id;
  ArrivalReader reader(group);
  watched_.insert_or_assign(id, Watched{std::move(group), std::move(reader), source, tally});
  if (reads() && !thread_.joinable()) start_thread();
}

void JobObserver::start_thread() {
  thread_ = start_quiet_thread([this](const std::stop_token& stop) { run(stop); });
}

void JobObserver::remove(const void* id) noexcept {
  const std::lock_guard lock(watching_);
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  read(found->second);
  if (drawn() != nullptr || numbers_ != nullptr) read_last_calls(found->second);
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
  if (thread_.joinable()) clock_.wait_until_known(kTimeForClockAtEnd);
  {
    const std::lock_guard lock(watching_);
    if (std::exchange(stopping_, true)) return;
    read_all();
    watched_.clear();
    if (numbers_) numbers_->stop();
    if (timeline_) timeline_->stop();
    thread_.request_stop();
  }
  if (thread_.joinable()) thread_.join();
}

void JobObserver::run(const std::stop_token& stop) {
  clock_.ask_if_due();
  std::unique_lock lock(watching_);
  auto next_reading = Clock::now() + kToFirstReading;
  const auto read_from = next_reading + kTimeForClock;  // without the chief's clock, if need be
  while (true) {
    const bool over_network =
        std::ranges::any_of(watched_, [](const auto& entry) { return entry.second.source.nodes > 1; });
    const auto next = over_network ? std::min(next_reading, next_look_) : next_reading;
    if (wakes_.wait_until(lock, stop, next, [&] { return stop.stop_requested(); })) return;
    const auto now = Clock::now();
    if (over_network && now >= next_look_) look_at_queues();
    if (now < next_reading) continue;
    clock_.ask_if_due();
    next_reading = now + kToFirstReading;
    if (!clock_.offset() && now < read_from) continue;
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
  if (timeline_) timeline_->take_spans();
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
  if (!options_.name_stragglers) return;
  if (judge_) return judge_->add(0, looks);
  const ArrivalsNoteHead head{.looks = looks, .worker = options_.rank};
  tell_chief({reinterpret_cast<const char*>(&head), sizeof head});
}

void JobObserver::read(Watched& watched) {
  const StampScale scale = StampScale::at_this_moment();
  const ClockOffset clock = clock_.offset().value_or(ClockOffset{.error = -1});
  const std::int64_t now = ChiefClock::now() + clock.offset;
  Timeline* const picture = drawn();
  if (picture != nullptr) picture->note_clock_error(clock.error);
  ArrivalReader::Take take;
  if (picture != nullptr || watched.tally != nullptr) {
    take = [&](const ObservedCall& call) {
      if (picture != nullptr) picture->add(watched.source.communicator, call);
      if (watched.tally != nullptr) watched.tally->add(call);
    };
  }
  std::vector<CallArrivals> calls = watched.reader.read(scale, now, take);
  const std::vector<ObservedMessage> messages = watched.reader.take_messages();
  if (watched.tally != nullptr) watched.tally->end_reading(messages, scale.seconds_per_tick);
  if (calls.empty() || !options_.name_stragglers) return;
  if (watched.source.nodes > 1) {
    const std::size_t share = kCallsToldByAll / static_cast<std::size_t>(watched.source.nodes);
    thin_out(calls, std::clamp<std::size_t>(share, 4, kMostCallsTold));
  }
  if (judge_) return judge_->add(watched.source, calls);
  tell(watched.source, calls);
}

void JobObserver::tell(const ArrivalSource& source, std::span<const CallArrivals> calls) {
  while (!calls.empty()) {
    const auto some = calls.first(std::min(calls.size(), kCallsInNote));
    calls = calls.subspan(some.size());
    ArrivalsNoteHead head{.worker = options_.rank,
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
  if (clock_.hear(note) || looks_from_outside_->hear(note) || hear_who_is_slow(note)) return;
  if (options_.rank != 0 || (numbers_ && numbers_->hear(note))) return;
  if ((timeline_ && timeline_->hear(note)) || !judge_) return;
  ArrivalsNoteHead head;
  if (note.size() < sizeof head) return;
  std::memcpy(&head, note.data(), sizeof head);
  head.communicator.back() = '\0';
  note.remove_prefix(sizeof head);
  if (head.calls < 0 || note.size() != static_cast<std::size_t>(head.calls) * sizeof(CallArrivals)) return;
  std::vector<CallArrivals> calls(static_cast<std::size_t>(head.calls));
  std::memcpy(calls.data(), note.data(), note.size());
  if (head.looks.looks > 0) judge_->add(head.worker, head.looks);
  judge_->add({head.communicator.data(), head.node, head.nodes, head.shares_cores != 0}, calls);
}

void JobObserver::tell_all_who_is_slow(const std::vector<std::string>& lines) const {
  std::string note(kSlowMark);
  for (const std::string& line : lines) note += line + '\n';
  if (note.size() <= PeerWatch::kLongestNote) options_.tell_all(std::move(note));
}

bool JobObserver::hear_who_is_slow(std::string_view note) {
  if (!note.starts_with(kSlowMark)) return false;
  note.remove_prefix(kSlowMark.size());
  std::vector<std::string> lines;
  for (std::size_t end = 0; (end = note.find('\n')) != std::string_view::npos; note.remove_prefix(end + 1))
    lines.emplace_back(note.substr(0, end));
  const std::lock_guard lock(slow_mutex_);
  slow_ = std::move(lines);
  return true;
}

std::vector<std::string> JobObserver::slow_workers() const {
  if (judge_) return judge_->slow_at_present();
  const std::lock_guard lock(slow_mutex_);
  return slow_;
}

JobReport JobObserver::report_on(const ObservedGroup& group) const {
  JobReport report{.communicator = group.communicator, .host = self().host, .worker = options_.rank};
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
               .slow = judge_ ? judge_->slow_at_present() : std::vector<std::string>{}};
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
  if (timeline_) timeline_->conclude();
  if (judge_) judge_->conclude();
}

}  // namespace cohort
