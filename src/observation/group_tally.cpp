#include "group_tally.h"

#include <algorithm>
#include <utility>

#include <cohort/device/dtype.h>

#include "collective/record/packed_call.h"
#include "collective/record/record_reader.h"

namespace cohort {
namespace {

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

}  // namespace cohort
