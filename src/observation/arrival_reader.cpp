#include "arrival_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/system_calls.h"
#include "collective/record/call_record.h"

namespace cohort {
namespace {

/// How many entries are given up, beside those that were replaced, when their member is faster than the
/// reader: it would replace the next ones, too, while they are read.
constexpr std::uint64_t kHeadStart = kRecordedCalls / 4;

/// From when on a call keeps the network busy for long enough to be seen.
constexpr std::uint64_t kElementsOfLongCall = 16 << 10;

/// The latest entry, by its number from 0, in a record whose entry `written` has been written.
std::uint64_t newest_entry(const MemberRecord& record, std::uint64_t written) {
  std::uint64_t unwritten = written + kRecordedCalls;
  while (unwritten - written > 1) {
    const std::uint64_t middle = written + (unwritten - written) / 2;
    const std::uint64_t version =
        record.entries[middle % kRecordedCalls].version.load(std::memory_order_acquire);
    (version > 2 * middle ? written : unwritten) = middle;
  }
  return written;
}

/// For how long a thread could have run and did not, in nanoseconds; nothing where the system does not say.
std::optional<std::int64_t> wait_for_cores(std::int64_t process, std::int32_t thread) {
  // How long it has run, how long it has waited, and how often.
  const std::string text = read_system_file(fmt::format("/proc/{}/task/{}/schedstat", process, thread));
  const std::size_t second = text.find(' ');
  if (second == std::string::npos) return std::nullopt;
  std::int64_t waited = 0;
  std::from_chars(text.data() + second + 1, text.data() + text.size(), waited);
  return waited;
}

}  // namespace

ArrivalReader::ArrivalReader(const ObservedGroup& group)
    : spans_nodes_(group.workers.size() > group.records.size()), shares_cores_(group.shares_cores) {
  for (const MemberRecord* record : group.records) members_.push_back({.record = record});
}

std::vector<CallArrivals> ArrivalReader::read(const StampScale& scale, std::int64_t now, const Take& take) {
  for (Member& member : members_) read_new(member);
  std::vector<CallArrivals> calls;
  while (align()) calls.push_back(take_first(scale, now, take));
  if (!shares_cores_) explain_by_cores(calls);
  return calls;
}

bool ArrivalReader::misses_ends() const noexcept {
  return std::ranges::any_of(members_, [](const Member& member) { return !member.finished.empty(); });
}

/// A thread that shares its core only now and then waits for it in long pieces, in which its member comes
/// late: what it has waited since the last reading is taken to lie in the calls that it came late to.
void ArrivalReader::explain_by_cores(std::span<CallArrivals> calls) {
  for (Member& member : members_) {
    // A thread that has ended, or a process without a free descriptor, says nothing now.
    const std::optional<std::int64_t> waited =
        wait_for_cores(member.record->process.pid, member.record->thread);
    if (!waited) continue;
    std::int64_t left = *waited - std::exchange(member.waited_for_core, *waited);
    if (*waited == left) continue;  // the first reading says nothing of a time
    for (CallArrivals& call : calls) {
      if (call.last != member.record->worker) continue;
      call.away.core = std::min(left, call.lateness());
      left -= call.away.core;
    }
  }
}

bool ArrivalReader::moves_data_alike() {
  Member& member = members_.front();
  read_new(member);
  EntryFields fields;
  const EntryState state = read_entry(member.record->entries[member.entries_read % kRecordedCalls], fields);
  if (state != EntryState::kWhole || fields.version != 2 * (member.entries_read + 1)) return false;
  if (fields.end != CallEntry::kNotEnded) return false;
  const auto kind = static_cast<CollectiveKind>(KindField::unpack(fields.call.what));
  return traits_of(kind).pattern == CollectiveTraits::Pattern::kSymmetric &&
         ElementsField::unpack(fields.call.size) >= kElementsOfLongCall;
}

/// What is missed between two readings is taken to be like what is seen.
void ArrivalReader::read_new(Member& member) {
  const std::size_t messages_before = messages_.size();
  const std::uint64_t read_before = member.entries_read;
  std::uint64_t missed = 0;
  read_entries(member, missed);
  const auto passed = static_cast<double>(member.entries_read - read_before);
  const double stands_for = passed / (passed - static_cast<double>(missed));
  for (ObservedMessage& message : std::span(messages_).subspan(messages_before))
    message.stands_for = stands_for;
}

void ArrivalReader::read_entries(Member& member, std::uint64_t& missed) {
  for (std::size_t i = 0; i < kRecordedCalls; ++i) {
    EntryFields fields;
    const EntryState state = read_entry(member.record->entries[member.entries_read % kRecordedCalls], fields);
    const std::uint64_t expected = 2 * (member.entries_read + 1);
    if (fields.version > expected) {
      const std::uint64_t newest = newest_entry(*member.record, (fields.version + 1) / 2 - 1);
      const std::uint64_t next = newest + 1 - kRecordedCalls + kHeadStart;
      missed += next - std::exchange(member.entries_read, next);
      continue;
    }
    if (state != EntryState::kWhole || fields.version != expected) return;
    const auto kind = static_cast<CollectiveKind>(KindField::unpack(fields.call.what));
    if (is_message(kind)) {
      messages_.push_back({.worker = member.record->worker, .call = fields.call});
    } else {
      if (fields.end == CallEntry::kNotEnded) return;
      const std::uint64_t end = fields.end == CallEntry::kEndedAtOnce ? 0 : fields.end;
      if (fields.end != CallEntry::kFailed)
        member.finished.push_back({NumberField::unpack(fields.call.what), fields, end});
    }
    ++member.entries_read;
  }
}

/// Brings the first call that all members have finished to the front of each; false if there is none.
bool ArrivalReader::align() {
  std::uint64_t first = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (Member& member : members_) {
      while (!member.finished.empty() && member.finished.front().number < first) {
        member.before = member.finished.front();
        member.before->end = 0;
        member.finished.pop_front();
      }
      if (member.finished.empty()) return false;
      if (member.finished.front().number > first) {
        first = member.finished.front().number;
        changed = true;
      }
    }
  }
  return true;
}

CallArrivals ArrivalReader::take_first(const StampScale& scale, std::int64_t now, const Take& take) {
  const auto to_ns = [](double seconds) { return static_cast<std::int64_t>(seconds * 1e9); };
  const auto at = [&](std::uint64_t stamp) { return now - to_ns(scale.seconds_since(stamp)); };
  const auto away_of = [&](const Member& member) -> TimeAway {
    const EntryFields& call = member.finished.front().fields;
    const std::optional<Finished>& before = member.before;
    if (!before || before->number + 1 != member.finished.front().number || before->end == 0) return {};
    // With calls in flight there is no end in between.
    const std::uint64_t since = before->end <= call.arrival ? before->end : before->fields.arrival;
    const std::int64_t all = to_ns(static_cast<double>(call.arrival - since) * scale.seconds_per_tick);
    return {.all = all, .input = static_cast<std::int64_t>(call.input - before->fields.input)};
  };
  const auto arrival_of = [](const Member& member) { return member.finished.front().fields.arrival; };
  const Member& last = *std::ranges::max_element(members_, {}, arrival_of);
  const std::uint64_t all_here = arrival_of(last);
  CallArrivals call{.number = last.finished.front().number,
                    .last_at = at(all_here),
                    .last = last.record->worker,
                    .members = static_cast<std::int32_t>(members_.size()),
                    .away = away_of(last)};
  for (const Member& member : members_) {
    if (&member == &last) continue;
    call.second_at = std::max(call.second_at, at(arrival_of(member)));
    call.others_away = call.others_away.least(away_of(member));
  }
  for (Member& member : members_) {
    Finished& own = member.finished.front();
    if (own.end == 0) own.end = all_here;
    if (take) {
      take({.worker = member.record->worker,
            .number = own.number,
            .call = own.fields.call,
            .arrival = at(own.fields.arrival),
            .node_here = at(all_here),
            .all_here = at(spans_nodes_ ? std::max(all_here, own.fields.start) : all_here),
            .end = at(own.end),
            .last = call.last,
            .away = away_of(member),
            .input = static_cast<std::int64_t>(own.fields.input)});
    }
    member.before = own;
    member.finished.pop_front();
  }
  return call;
}

}  // namespace cohort
