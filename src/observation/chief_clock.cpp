#include "chief_clock.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace cohort {
namespace {

constexpr std::int64_t kNanosecondsInSecond = 1'000'000'000;

/// The chief is asked whenever it can be, until so many answers are there of which one was fast; from then on
/// once a second.
constexpr std::size_t kAnswersAtOnce = 5;

/// The best of so many answers counts.
constexpr std::size_t kAnswersKept = 16;

/// By how much clocks drift apart at most, as a fraction: the crystals of two machines differ by less.
constexpr double kDrift = 100e-6;

/// Times before that are converted by the first of so many offsets.
constexpr std::size_t kOffsetsKept = 4096;

struct Note {
  static constexpr std::uint64_t kMark = 0x6b636f6c63686f63ULL;  // tells these notes from others

  std::uint64_t mark = kMark;
  std::int32_t asker = 0;
  std::int32_t is_answer = 0;
  std::int64_t asked = 0;     ///< on the asker's clock
  std::int64_t answered = 0;  ///< on the chief's
};

std::string text_of(const Note& note) { return {reinterpret_cast<const char*>(&note), sizeof note}; }

}  // namespace

ChiefClock::ChiefClock(int rank, bool is_same, Tell tell)
    : rank_(rank), is_same_(is_same), tell_(std::move(tell)) {}

std::int64_t ChiefClock::now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void ChiefClock::ask_if_due() {
  if (is_same_) return;
  {
    const std::lock_guard lock(mutex_);
    if (answers_.size() >= kAnswersAtOnce && now() < next_question_) return;
    next_question_ = now() + kNanosecondsInSecond;
  }
  tell_(0, text_of({.asker = rank_, .asked = now()}));
}

bool ChiefClock::hear(std::string_view text) {
  const std::int64_t heard = now();
  Note note;
  if (text.size() != sizeof note) return false;
  std::memcpy(&note, text.data(), sizeof note);
  if (note.mark != Note::kMark) return false;
  if (note.is_answer == 0) {
    note.is_answer = 1;
    note.answered = now();
    if (rank_ == 0) tell_(note.asker, text_of(note));
    return true;
  }
  // The chief has read its clock at some time between both: in the middle, if the way there and back took as
  // long.
  const std::int64_t half = (heard - note.asked) / 2;
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back({heard, note.answered - (note.asked + half), half});
    if (answers_.size() > kAnswersKept) answers_.pop_front();
    note_offset(heard, best_at(heard)->offset);
  }
  first_answer_.notify_all();
  return true;
}

void ChiefClock::note_offset(std::int64_t from, std::int64_t offset) {
  if (offsets_.empty()) return offsets_.push_back({from, offset, from + offset});
  const Offset& before = offsets_.back();
  if (offset == before.offset) return;
  offsets_.push_back({from, offset, std::max(from + before.offset, before.least)});
  if (offsets_.size() > kOffsetsKept) offsets_.pop_front();
}

std::optional<ClockOffset> ChiefClock::offset() const {
  if (is_same_) return ClockOffset{};
  const std::lock_guard lock(mutex_);
  return best_at(now());
}

std::int64_t ChiefClock::to_chief(std::int64_t time) const {
  const std::lock_guard lock(mutex_);
  if (offsets_.empty()) return time;
  const auto next = std::ranges::upper_bound(offsets_, time, {}, &Offset::from);
  if (next == offsets_.begin()) return time + offsets_.front().offset;
  const Offset& known = *std::prev(next);
  return std::max(time + known.offset, known.least);
}

std::optional<ClockOffset> ChiefClock::best_at(std::int64_t time) const {
  std::optional<ClockOffset> best;
  for (const Answer& answer : answers_) {
    const auto drift = static_cast<std::int64_t>(kDrift * static_cast<double>(time - answer.heard));
    const ClockOffset offset{answer.offset, answer.error + drift};
    if (!best || offset.error < best->error) best = offset;
  }
  return best;
}

void ChiefClock::wait_until_known(std::chrono::milliseconds timeout) {
  if (is_same_) return;
  std::unique_lock lock(mutex_);
  first_answer_.wait_for(lock, timeout, [&] { return !answers_.empty(); });
}

}  // namespace cohort
