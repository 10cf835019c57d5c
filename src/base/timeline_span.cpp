// How a program says what its time goes to: spans with names, and waits for input.
#include <cohort/base/timeline_span.h>

#include <chrono>
#include <iterator>
#include <new>
#include <utility>

#include <cohort/base/input_wait.h>

#include "timeline_spans.h"

namespace cohort {
namespace {

/// Until somebody takes them.
constexpr std::size_t kMostSpans = 1 << 16;

constexpr std::size_t kMostOfName = 63;

std::int64_t now() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

int number_of_this_thread() noexcept {
  static std::atomic<int> threads{0};
  thread_local const int number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

/// Waits inside waits count once.
thread_local int input_wait_depth = 0;

}  // namespace

TimelineSpan::TimelineSpan(std::string_view name) {
  TimelineSpans& spans = TimelineSpans::of_this_process();
  const SpanListener* const listener = spans.listener();
  if (!spans.are_kept() && listener == nullptr) return;
  name_ = name.substr(0, kMostOfName);
  if (listener != nullptr) {
    listener->begin(name_.c_str());
    is_told_ = true;
  }
  if (!spans.are_kept()) return;
  [[maybe_unused]] const int thread = number_of_this_thread();  // threads are numbered as their spans begin
  begin_ = now();
}

TimelineSpan::~TimelineSpan() {
  TimelineSpans& spans = TimelineSpans::of_this_process();
  if (is_told_) spans.listener()->end();
  if (begin_ != kNotKept) spans.add({std::move(name_), number_of_this_thread(), begin_, now()});
}

TimelineSpans& TimelineSpans::of_this_process() {
  static auto& spans = *new TimelineSpans;  // threads may have spans until the process ends
  return spans;
}

void TimelineSpans::keep(bool wanted) {
  const std::lock_guard lock(mutex_);
  are_kept_.store(wanted, std::memory_order_relaxed);
  spans_ = {};
  lost_ = 0;
}

void TimelineSpans::add(FinishedSpan span) noexcept {
  const std::lock_guard lock(mutex_);
  if (!are_kept()) return;
  try {
    if (spans_.size() < kMostSpans) return spans_.push_back(std::move(span));
  } catch (const std::bad_alloc&) {
  }
  ++lost_;
}

std::vector<FinishedSpan> TimelineSpans::take(std::size_t most) {
  const std::lock_guard lock(mutex_);
  if (spans_.size() <= most) return std::exchange(spans_, {});
  const auto end = spans_.begin() + static_cast<std::ptrdiff_t>(most);
  std::vector<FinishedSpan> first(std::move_iterator(spans_.begin()), std::move_iterator(end));
  spans_.erase(spans_.begin(), end);
  return first;
}

std::uint64_t TimelineSpans::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

InputWait::InputWait() noexcept : begin_(input_wait_depth++ == 0 ? static_cast<std::uint64_t>(now()) : 0) {}

InputWait::~InputWait() {
  if (--input_wait_depth == 0)
    total_.fetch_add(static_cast<std::uint64_t>(now()) - begin_, std::memory_order_relaxed);
}

}  // namespace cohort
