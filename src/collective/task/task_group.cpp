#include "task_group.h"

#include <array>
#include <new>

#include <cohort/collective/task.h>

namespace cohort {
namespace {

constexpr std::size_t kUnit = 256;  ///< in which the frames of tasks are allocated
constexpr std::size_t kSizes = 4;   ///< up to 1 KiB; larger frames are as rare as they are slow
constexpr std::size_t kOfEachSize = 4;

/// A collective makes a few frames, of the same sizes as the one before, so each thread keeps what it
/// freed last.
class FrameCache {
 public:
  FrameCache() = default;
  ~FrameCache() {
    for (Size& size : sizes_) {
      while (size.count > 0) ::operator delete(size.frames[--size.count]);
    }
  }
  FrameCache(const FrameCache&) = delete;
  FrameCache& operator=(const FrameCache&) = delete;

  void* take(std::size_t index) noexcept {
    Size& size = sizes_[index];
    return size.count > 0 ? size.frames[--size.count] : nullptr;
  }

  bool keep(void* frame, std::size_t index) noexcept {
    Size& size = sizes_[index];
    if (size.count == kOfEachSize) return false;
    size.frames[size.count++] = frame;
    return true;
  }

 private:
  struct Size {
    std::array<void*, kOfEachSize> frames{};
    std::size_t count = 0;
  };
  std::array<Size, kSizes> sizes_;
};

thread_local FrameCache frame_cache;

constexpr std::size_t size_index(std::size_t bytes) { return (bytes - 1) / kUnit; }

}  // namespace

// NOLINTNEXTLINE(misc-new-delete-overloads): the sized form below is the matching one
void* detail::TaskFrame::operator new(std::size_t bytes) {
  const std::size_t index = size_index(bytes);
  if (index >= kSizes) return ::operator new(bytes);
  if (void* frame = frame_cache.take(index)) return frame;
  return ::operator new((index + 1) * kUnit);
}

void detail::TaskFrame::operator delete(void* frame, std::size_t bytes) noexcept {
  const std::size_t index = size_index(bytes);
  if (index < kSizes && frame_cache.keep(frame, index)) return;
  ::operator delete(frame);
}

std::size_t TaskGroup::add(Task<> task) {
  tasks_.push_back(std::move(task));
  return gone_ + tasks_.size() - 1;
}

bool TaskGroup::advance() {
  bool moved = false;
  for (Task<>& task : tasks_) {
    while (!task.done() && task.ready()) {
      task.resume();
      moved = true;
      if (!task.done() && task.has_yielded()) break;
    }
  }
  for (; !tasks_.empty() && tasks_.front().done(); ++gone_) tasks_.pop_front();
  return moved;
}

bool TaskGroup::done(std::size_t number) const noexcept {
  return number < gone_ || tasks_[number - gone_].done();
}

// Every movement counts as progress of the task that waits, so that a long transfer is not taken for a
// standstill, and is followed by a yield, so that more urgent calls get their turn.

Task<> TaskGroup::wait_for_all() {
  while (!done()) {
    co_await until([this] { return advance() || done(); });
    co_await yield();
  }
}

Task<> TaskGroup::wait_for(std::size_t number) {
  while (!done(number)) {
    co_await until([this] { return advance(); });
    co_await yield();
  }
}

Task<> TaskGroup::run_alongside(Task<> task) {
  while (!task.done()) {
    co_await until([&] {
      bool moved = advance();
      for (; !task.done() && task.ready(); moved = true) {
        task.resume();
        if (!task.done() && task.has_yielded()) return true;
      }
      return moved;
    });
    co_await yield();
  }
}

}  // namespace cohort
