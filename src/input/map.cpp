#include <cohort/input/detail/map.h>

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include <cohort/base/error.h>

#include "base/quiet_thread.h"

namespace cohort::detail {

ParallelStage::ParallelStage(const ParallelStageOptions& options, Read read, Work work)
    : read_(std::move(read)),
      work_(std::move(work)),
      keep_order_(options.keep_order),
      slots_(options.slots),
      free_(options.slots) {
  std::iota(free_.begin(), free_.end(), 0);
  try {
    for (int thread = 0; thread < options.threads; ++thread)
      threads_.push_back(start_program_thread([this] { serve(); }));
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
  slot_is_free_.notify();
}

bool ParallelStage::next(const Take& take) {
  std::optional<std::size_t> slot;
  slot_is_done_.wait_until([&] {
    const std::lock_guard lock(mutex_);
    slot = take_done_slot();
    return slot || (source_ended_ && pending_.empty());
  });
  if (!slot) return false;
  const std::exception_ptr error = std::exchange(slots_[*slot], {}).error;
  if (!error) take(*slot);
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(*slot);
  }
  slot_is_free_.notify();
  if (error) std::rethrow_exception(error);
  return true;
}

std::optional<std::size_t> ParallelStage::take_done_slot() {
  const auto last = keep_order_ && !pending_.empty() ? pending_.begin() + 1 : pending_.end();
  const auto taken =
      std::find_if(pending_.begin(), last, [&](std::size_t slot) { return slots_[slot].done; });
  if (taken == last) return std::nullopt;
  const std::size_t slot = *taken;
  pending_.erase(taken);
  return slot;
}

void ParallelStage::serve() {
  while (true) {
    const std::optional<std::size_t> read = read_one();
    if (!read) return;
    const std::size_t slot = *read;
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
    slot_is_done_.notify();
  }
}

std::optional<std::size_t> ParallelStage::read_one() {
  const std::lock_guard reading(reading_);
  const std::optional<std::size_t> free = wait_for_free_slot();
  if (!free) return std::nullopt;
  const std::size_t slot = *free;
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
    slot_is_done_.notify();  // the consumer may be waiting for an element that will not come
    return std::nullopt;
  }
  slots_[slot].error = std::move(error);
  pending_.push_back(slot);
  return slot;
}

std::optional<std::size_t> ParallelStage::wait_for_free_slot() {
  std::optional<std::size_t> slot;
  slot_is_free_.wait_until([&] {
    const std::lock_guard lock(mutex_);
    if (stopped_ || source_ended_) return true;
    if (free_.empty()) return false;
    slot = free_.back();
    free_.pop_back();
    return true;
  });
  return slot;
}

}  // namespace cohort::detail
