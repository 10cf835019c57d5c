#include "numbers_keeper.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/device/dtype.h>

#include "base/files.h"
#include "base/system_calls.h"
#include "collective/choice/choice_log.h"
#include "collective/record/call_record.h"
#include "run_numbers.h"

namespace cohort {
namespace {

using namespace std::chrono_literals;

/// Prometheus reads such files four times a minute, if nobody says otherwise.
constexpr auto kBetweenFiles = 2s;

double to_seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

void add_scaled(RunNumbers& sum, const RunNumbers& seen, double factor) {
  RunNumbers scaled = seen;
  for (KindNumbers& kind : scaled.kinds) {
    kind.calls *= factor;
    kind.bytes *= factor;
    kind.seconds *= factor;
  }
  for (auto& [rank, worker] : scaled.workers) worker.communication *= factor;
  scaled.calls *= factor;
  sum.add(scaled);
}

}  // namespace

GroupTally::GroupTally(const ObservedGroup& group) {
  for (const MemberRecord* record : group.records) members_.push_back({.record = record});
  for (const int worker : group.workers) members_of_worker_[worker] += 1;
}

void GroupTally::add(const ObservedCall& call) {
  const std::optional<RecordedCall> recorded = unpack(call.call);
  if (!recorded) return;
  if (call.number >= read_) ++reading_.calls;
  read_ = call.number + 1;
  const double duration = to_seconds(std::max<std::int64_t>(call.end - call.arrival, 0));
  KindNumbers& kind = reading_.numbers.kinds[static_cast<std::size_t>(recorded->kind)];
  kind.calls += 1;
  kind.bytes += static_cast<double>(recorded->elements * size_of(recorded->dtype));
  kind.seconds += duration;
  reading_.numbers.calls += 1;
  reading_.numbers.seen += 1;
  WorkerNumbers& worker = reading_.numbers.workers[call.worker];
  // Of an asynchronous call only the wait for it keeps the program, and its record counts that.
  if (AsyncField::unpack(call.call.what) == 0)
    worker.communication += duration / members_of_worker_[call.worker];
  worker.input = std::max(worker.input, to_seconds(call.input));
}

void GroupTally::end_reading(std::span<const ObservedMessage> messages, double seconds_per_tick) {
  if (reading_.calls > 0) {
    latest_ = std::exchange(reading_, {});
    extrapolate(read_ - next_);
  }
  for (const ObservedMessage& message : messages) {
    const std::optional<RecordedCall> recorded = unpack(message.call);
    if (!recorded) continue;
    KindNumbers& kind = numbers_.kinds[static_cast<std::size_t>(recorded->kind)];
    kind.calls += message.stands_for;
    kind.bytes += message.stands_for * static_cast<double>(recorded->elements * size_of(recorded->dtype));
  }
  for (Member& member : members_) {
    if (member.record->rank.load(std::memory_order_acquire) < 0) continue;  // nobody's yet
    const std::uint64_t waited = member.record->waited.load(std::memory_order_relaxed);
    const auto ticks = static_cast<double>(waited - std::exchange(member.waited, waited));
    const int worker = member.record->worker;
    numbers_.workers[worker].communication += ticks * seconds_per_tick / members_of_worker_[worker];
  }
}

void GroupTally::finish() {
  std::uint64_t begun = 0;
  for (const Member& member : members_)
    begun = std::max(begun, member.record->begun.load(std::memory_order_acquire));
  latest_.numbers.seen = 0;
  if (begun > next_) extrapolate(begun - next_);
}

/// So many calls after those that were counted are like those of the latest reading.
void GroupTally::extrapolate(std::uint64_t calls) {
  next_ += calls;
  if (latest_.calls == 0) return;
  add_scaled(numbers_, latest_.numbers, static_cast<double>(calls) / static_cast<double>(latest_.calls));
}

NumbersKeeper::NumbersKeeper(NumbersOptions options, std::vector<WorkerInfo> workers, int rank,
                             TellChief tell_chief)
    : options_(std::move(options)),
      workers_(std::move(workers)),
      rank_(rank),
      tell_chief_(std::move(tell_chief)) {
  if (rank_ == 0 && options_.table) ChoiceLog::of_this_process().turn_on();
}

GroupTally* NumbersKeeper::begin(const ObservedGroup& group) { return &tallies_.emplace_back(group); }

void NumbersKeeper::finish(GroupTally* tally) {
  tally->finish();
  finished_.add(tally->numbers());
  tallies_.remove_if([&](const GroupTally& other) { return &other == tally; });
}

double NumbersKeeper::elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

RunNumbers NumbersKeeper::own() const {
  RunNumbers numbers = finished_;
  for (const GroupTally& tally : tallies_) numbers.add(tally.numbers());
  for (auto& [rank, worker] : numbers.workers) worker.elapsed = elapsed();
  return numbers;
}

void NumbersKeeper::tell() {
  RunNumbers numbers = own();
  if (rank_ != 0) {
    if (numbers.workers.empty()) return;
    for (std::string& note : to_notes(numbers, rank_)) tell_chief_(std::move(note));
    return;
  }
  const std::lock_guard lock(telling_);
  by_reader_[rank_] = std::move(numbers);
}

void NumbersKeeper::tell_if_due() {
  if (options_.prometheus.empty()) return;  // for the table, what is told at the end is enough
  const auto now = Clock::now();
  if (now < next_note_) return;
  next_note_ = now + kBetweenFiles;
  tell();
}

void NumbersKeeper::write_if_due() {
  if (!writes() || Clock::now() < next_file_) return;
  next_file_ = Clock::now() + kBetweenFiles;
  write(elapsed());
}

bool NumbersKeeper::hear(std::string_view note) {
  const std::lock_guard lock(telling_);
  return cohort::hear(note, by_reader_);
}

void NumbersKeeper::stop() {
  while (!tallies_.empty()) finish(&tallies_.front());
  tell();
  seconds_ = elapsed();
}

void NumbersKeeper::conclude() {
  if (rank_ != 0) return;
  if (writes()) write(seconds_);
  if (!options_.table) return;
  try {
    // In one piece, so that other processes' output does not come in between.
    write_fully(STDERR_FILENO,
                table_of(of_all(), workers_, seconds_, ChoiceLog::of_this_process().choices()));
  } catch (const std::exception&) {
    // There is nowhere left to say it.
  }
}

RunNumbers NumbersKeeper::of_all() const {
  const std::lock_guard lock(telling_);
  RunNumbers numbers;
  for (const auto& [reader, of_reader] : by_reader_) numbers.add(of_reader);
  return numbers;
}

void NumbersKeeper::write(double seconds) {
  try {
    NewFile file(options_.prometheus);
    write_fully(file.descriptor(), prometheus_text(of_all(), workers_, seconds));
    file.publish();
  } catch (const std::exception& error) {
    if (std::exchange(cannot_write_, true)) return;
    logging::warning("the numbers cannot be written to {}, which COHORT_PROMETHEUS names: {}",
                     options_.prometheus, error.what());
  }
}

}  // namespace cohort
