#include "call_record.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/clocks.h"

namespace cohort {
namespace {

/// Asked for once; again in a forked child.
ProcessIdentity identity_of_this_process() {
  static const ProcessIdentity identity = own_identity();
  return identity.pid == ::getpid() ? identity : own_identity();
}

}  // namespace

CallRecorder::CallRecorder(MemberRecord& record, const RecordOwner& owner)
    : record_(record), clock_(StampClock::of_this_process()) {
  record_.worker = owner.worker;
  record_.reads_counter = clock_.reads_counter();
  record_.process = identity_of_this_process();
  record_.thread = ::gettid();
  const std::size_t length = std::min(owner.communicator.size(), record_.communicator.size() - 1);
  std::copy_n(owner.communicator.begin(), length, record_.communicator.begin());
  record_.rank.store(owner.rank, std::memory_order_release);
}

void CallRecorder::explain(const Entry& call, std::string_view words) noexcept {
  CallExplanation& explanation = record_.explanation;
  explanation.version.store(call.version - 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < explanation.text.size(); ++i) {
    std::uint64_t part = 0;
    const std::string_view left = words.substr(std::min(8 * i, words.size()));
    std::memcpy(&part, left.data(), std::min<std::size_t>(left.size(), 8));
    explanation.text[i].store(part, std::memory_order_release);
  }
  explanation.version.store(call.version, std::memory_order_release);
}

namespace {

/// The words, and the version of the entry that they are about.
std::pair<std::uint64_t, std::string> read(const CallExplanation& explanation) {
  std::array<char, sizeof explanation.text> text{};
  const std::uint64_t version = explanation.version.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < explanation.text.size(); ++i) {
    const std::uint64_t part = explanation.text[i].load(std::memory_order_acquire);
    std::memcpy(text.data() + 8 * i, &part, sizeof part);
  }
  if (version % 2 != 0 || explanation.version.load(std::memory_order_relaxed) != version) return {};
  const auto end = std::ranges::find(text, '\0');
  return {version, std::string(text.begin(), end)};
}

/// Nothing for what no call can be: a record whose memory was given back meanwhile.
std::optional<RecordedCall> to_call(const EntryFields& fields, const StampScale& scale) {
  std::optional<RecordedCall> call = unpack(fields.call);
  if (!call) return std::nullopt;
  call->arrived_ago = scale.seconds_since(fields.arrival);
  if (fields.start != 0) call->started_ago = scale.seconds_since(fields.start);
  call->failed = fields.end == CallEntry::kFailed;
  call->ended = fields.end != CallEntry::kNotEnded && !call->failed;
  if (call->ended && fields.end != CallEntry::kEndedAtOnce) call->ended_ago = scale.seconds_since(fields.end);
  return call;
}

}  // namespace

StampScale StampScale::at_this_moment() {
  const StampClock& clock = StampClock::of_this_process();
  const double seconds_per_tick = clock.seconds_per_tick();
  return {.now = clock.now(), .seconds_per_tick = seconds_per_tick};
}

std::optional<RecordedCall> unpack(const PackedCall& packed) {
  const std::uint64_t kind = KindField::unpack(packed.what);
  const std::uint64_t dtype = DTypeField::unpack(packed.what);
  const std::uint64_t op = OpField::unpack(packed.what);
  if (kind >= kCollectiveKinds || dtype >= kAllDTypes.size() ||
      op > static_cast<std::uint64_t>(ReduceOp::kProd))
    return std::nullopt;
  RecordedCall call;
  call.kind = static_cast<CollectiveKind>(kind);
  call.dtype = static_cast<DType>(dtype);
  call.op = static_cast<ReduceOp>(op);
  call.priority = static_cast<Priority>(PriorityField::unpack(packed.what));
  const std::uint64_t number_or_tag = NumberField::unpack(packed.what);
  if (is_message(call.kind))
    call.tag = static_cast<int>(number_or_tag);
  else
    call.number = number_or_tag;
  call.root = static_cast<int>(RootField::unpack(packed.size));
  call.elements = ElementsField::unpack(packed.size);
  return call;
}

bool read_record(const MemberRecord& record, const StampScale& scale, ReportedMember& member) {
  const int rank = record.rank.load(std::memory_order_acquire);
  if (rank < 0) return false;
  member.rank = rank;
  member.worker = record.worker;
  member.pid = record.process.pid;
  member.is_readable = true;
  member.begun = record.begun.load(std::memory_order_acquire);
  const auto [explained, words] = read(record.explanation);
  std::vector<std::pair<std::uint64_t, RecordedCall>> calls;
  for (const CallEntry& entry : record.entries) {
    EntryFields fields;
    const EntryState state = read_entry(entry, fields);
    if (state == EntryState::kEmpty) continue;
    std::optional<RecordedCall> call = state == EntryState::kWhole ? to_call(fields, scale) : std::nullopt;
    if (!call) {
      ++member.torn;
      continue;
    }
    if (fields.version == explained) call->words = words;
    calls.emplace_back(fields.version, std::move(*call));
  }
  std::ranges::sort(calls, {}, &std::pair<std::uint64_t, RecordedCall>::first);
  member.calls.clear();
  for (auto& [version, call] : calls) {
    // The member may have begun it since.
    if (!is_message(call.kind)) member.begun = std::max(member.begun, call.number + 1);
    member.calls.push_back(std::move(call));
  }
  return true;
}

}  // namespace cohort
