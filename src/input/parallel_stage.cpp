#include <cohort/input/detail/parallel_stage.h>

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include <cohort/base/error.h>

namespace cohort::detail {

ParallelStage::ParallelStage(const ParallelStageOptions& options, Read read, Work work)
    : read_(std::move(read)),
      work_(std::move(work)),
      keep_order_(options.keep_order),
      slots_(options.slots),
      free_(options.slots) {
  std::iota(free_.begin(), free_.end(), 0);
  try {
    for (int thread = 0; thread < options.threads; ++thread) threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    stop();
    throw Unavailable("cannot start thread {} of {} of an input pipeline: {}; ask for less parallelism",
                      threads_.size() + 1, options.threads, error.what());
  }
}

ParallelStage::~ParallelStage() { stop(); }

void ParallelStage::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  slot_is_free_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ParallelStage::next(const Take& take) {
  std::unique_lock lock(mutex_);
  auto taken = pending_.end();
  slot_is_done_.wait(lock, [&] {
    const auto last = keep_order_ && !pending_.empty() ? pending_.begin() + 1 : pending_.end();
    taken = std::find_if(pending_.begin(), last, [&](std::size_t slot) { return slots_[slot].done; });
    return taken != last || (source_ended_ && pending_.empty());
  });
  if (pending_.empty()) return false;
  const std::size_t slot = *taken;
  pending_.erase(taken);
  const std::exception_ptr error = std::exchange(slots_[slot], {}).error;
  lock.unlock();

  if (!error) take(slot);

  lock.lock();
  free_.push_back(slot);
  lock.unlock();
  slot_is_free_.notify_one();
  if (error) std::rethrow_exception(error);
  return true;
}

void ParallelStage::serve() {
  while (true) {
    const std::size_t slot = read_one();
    if (slot == slots_.size()) return;
    std::exception_ptr error;
    if (!slots_[slot].error) {
      try {
        work_(slot);
      } catch (...) {
        error = std::current_exception();
      }
    }
    {
      const std::lock_guard lock(mutex_);
      if (error) slots_[slot].error = std::move(error);
      slots_[slot].done = true;
    }
    slot_is_done_.notify_one();
  }
}

std::size_t ParallelStage::read_one() {
  const std::lock_guard reading(reading_);
  std::size_t slot = 0;
  if (!wait_for_free_slot(slot)) return slots_.size();
  std::exception_ptr error;
  bool ended = false;
  try {
    ended = !read_(slot);
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (ended) {
    source_ended_ = true;
    slot_is_done_.notify_one();  // the consumer may be waiting for an element that will not come
    return slots_.size();
  }
  slots_[slot].error = std::move(error);
  pending_.push_back(slot);
  return slot;
}

bool ParallelStage::wait_for_free_slot(std::size_t& slot) {
  std::unique_lock lock(mutex_);
  slot_is_free_.wait(lock, [&] { return stopped_ || source_ended_ || !free_.empty(); });
  if (stopped_ || source_ended_) return false;
  slot = free_.back();
  free_.pop_back();
  return true;
}

}  // namespace cohort::detail
