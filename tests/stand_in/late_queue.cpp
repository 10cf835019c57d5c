#include "late_queue.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace gpu_stand_in {
namespace {

// Long against what a test does between two calls, short against its time limit.
constexpr std::chrono::milliseconds kLateness{20};
constexpr std::size_t kMostTasks = 512;

std::atomic<std::size_t> limit_of_tasks{0};

struct Blocked {
  std::mutex mutex;
  std::condition_variable changed;
  int threads = 0;

  void add(int number) {
    const std::lock_guard lock(mutex);
    threads += number;
    changed.notify_all();
  }
};

// Never destroyed, for programs end while their streams still run.
Blocked& blocked() {
  static Blocked& instance = *new Blocked;
  return instance;
}

}  // namespace

LateQueue::LateQueue(int device) : device_(device), thread_([this] { serve(); }) {}

LateQueue::~LateQueue() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void LateQueue::add(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back({std::move(task), std::chrono::steady_clock::now()});
  changed_.notify_all();
}

void LateQueue::wait_for_room() {
  const auto has_room = [this] {
    const std::size_t most = limit_of_tasks;
    return most == 0 || tasks_.size() < most;
  };
  std::unique_lock lock(mutex_);
  if (has_room()) return;
  blocked().add(1);
  changed_.wait(lock, has_room);
  blocked().add(-1);
}

void LateQueue::wait_for_blocked_threads() {
  std::unique_lock lock(blocked().mutex);
  blocked().changed.wait(lock, [] { return blocked().threads == 0; });
}

void LateQueue::limit(std::size_t tasks) { limit_of_tasks = tasks; }

std::uint64_t LateQueue::end() const {
  const std::lock_guard lock(mutex_);
  return done_ + tasks_.size();
}

bool LateQueue::reached(std::uint64_t place) {
  const std::lock_guard lock(mutex_);
  wanted_ = std::max(wanted_, place);
  changed_.notify_all();
  return done_ >= place;
}

void LateQueue::run_to(std::uint64_t place) {
  std::unique_lock lock(mutex_);
  wanted_ = std::max(wanted_, place);
  changed_.notify_all();
  changed_.wait(lock, [&] { return done_ >= place; });
}

bool LateQueue::is_due() const {
  return ending_ || wanted_ > done_ || tasks_.size() > kMostTasks ||
         std::chrono::steady_clock::now() - tasks_.front().queued >= kLateness;
}

void LateQueue::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    if (!is_due()) {
      changed_.wait_until(lock, tasks_.front().queued + kLateness, [this] { return is_due(); });
    }
    // It stays in the queue while it runs, so that `end` counts it once.
    const std::function<void()> run = std::move(tasks_.front().run);
    lock.unlock();
    run();
    lock.lock();
    tasks_.pop_front();
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace gpu_stand_in
