#include "summary/summary_queue.h"

#include <algorithm>
#include <span>
#include <utility>

#include <cohort/base/log.h>

#include "base/quiet_thread.h"

namespace cohort {
namespace {

constexpr std::size_t kUsualTag = 64;     // bytes
constexpr double kLongestPatience = 1e8;  // seconds, which a clock can add to its time

}  // namespace

SummaryWriter::Queue::Queue(std::vector<std::unique_ptr<SummarySink>> sinks,
                            const SummaryWriterOptions& options)
    : sinks_(std::move(sinks)),
      due_(options.max_queue),
      patience_(std::min(options.flush_seconds, kLongestPatience)) {
  // Callers go on while the thread wakes up.
  for (std::vector<Entry>* entries : {&filling_, &writing_}) {
    entries->resize(2 * due_);
    for (Entry& entry : *entries) entry.value.tag.reserve(kUsualTag);
  }
  thread_ = start_program_thread([this] { serve(); });
}

SummaryWriter::Queue::~Queue() {
  if (!is_closed_) {
    try {
      close();
    } catch (const std::exception& error) {
      logging::error("{}", error.what());
    }
  }
}

void SummaryWriter::Queue::wait_for_space(std::unique_lock<std::mutex>& lock) {
  throw_failure();
  if (count_ < filling_.size()) return;
  written_.wait(lock, [this] { return count_ < filling_.size(); });
  throw_failure();
}

void SummaryWriter::Queue::throw_failure() {
  if (failure_.empty()) return;
  is_told_ = true;
  throw Unavailable("{}; what was recorded since its last flush is lost. Make room, and a new SummaryWriter",
                    failure_);
}

void SummaryWriter::Queue::flush() {
  std::unique_lock lock(mutex_);
  const std::uint64_t own = added_;
  is_asked_ = true;
  work_.notify_one();
  written_.wait(lock, [&] { return done_ >= own; });
  throw_failure();
}

void SummaryWriter::Queue::close() {
  is_closed_ = true;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  work_.notify_one();
  thread_.join();
  close_sinks();
  if (!is_told_) throw_failure();
}

void SummaryWriter::Queue::serve() {
  std::unique_lock lock(mutex_);
  while (!ends_ || count_ > 0) {
    work_.wait_for(lock, patience_, [this] { return count_ >= due_ || is_asked_ || ends_; });
    is_asked_ = false;
    filling_.swap(writing_);
    const std::size_t count = std::exchange(count_, 0);
    lock.unlock();
    written_.notify_all();  // there is space
    write(count);
    lock.lock();
    done_ += count;
    written_.notify_all();
  }
}

/// Each sink has all of it, whatever becomes of the others.
void SummaryWriter::Queue::write(std::size_t count) {
  if (count == 0) return;
  for (const auto& sink : sinks_) {
    try {
      write(*sink, count);
    } catch (const std::exception& error) {
      note_failure(error);
    }
  }
  for (Entry& entry : std::span(writing_).first(count))
    if (entry.value.scalar() == nullptr) entry.value.value = 0.0;  // it may be large
}

void SummaryWriter::Queue::close_sinks() {
  for (const auto& sink : sinks_) {
    try {
      sink->close();
    } catch (const std::exception& error) {
      note_failure(error);
    }
  }
  sinks_.clear();
}

void SummaryWriter::Queue::note_failure(const std::exception& error) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = error.what();
}

void SummaryWriter::Queue::write(SummarySink& sink, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto& [value, is_restart] = writing_[i];
    if (is_restart)
      sink.restart(value.step, value.wall_time);
    else
      sink.write(value);
  }
  sink.flush();
}

}  // namespace cohort
