// Threads that work ahead of a consumer, for stages that read or compute in the background. A
// stage has a few slots; each holds one element on its way: read, one after the other and in order,
// worked on, many at once, and taken by the consumer. No slot free, no reading: that bounds memory.
//
// The threads live as long as the stage. Destroying it waits for what they are doing just then.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <cohort/base/event_count.h>

namespace cohort::detail {

struct ParallelStageOptions {
  int threads = 1;
  std::size_t slots = 1;   ///< elements on their way at a time
  bool keep_order = true;  ///< elements are taken in the order of reading, otherwise as they get done
};

class ParallelStage {
 public:
  /// Reads the next element into the slot; false at the end. Never called by two threads at once.
  using Read = std::function<bool(std::size_t slot)>;
  /// What is done to the element of a slot, by any thread.
  using Work = std::function<void(std::size_t slot)>;
  /// What the consumer does with a finished element.
  using Take = std::function<void(std::size_t slot)>;

  /// @throws Unavailable when the threads cannot be started.
  ParallelStage(const ParallelStageOptions& options, Read read, Work work);
  ~ParallelStage();
  ParallelStage(const ParallelStage&) = delete;
  ParallelStage& operator=(const ParallelStage&) = delete;

  /// Waits for the next element and calls `take` with its slot; false at the end. Throws what reading
  /// or working on that element threw; the call after goes on with the element behind it.
  [[nodiscard]] bool next(const Take& take);

 private:
  struct Slot {
    bool done = false;
    std::exception_ptr error;
  };

  void serve();
  /// Reads into a free slot and returns it; nothing when there is no more to do.
  [[nodiscard]] std::optional<std::size_t> read_one();
  /// Nothing when none is needed any more.
  [[nodiscard]] std::optional<std::size_t> wait_for_free_slot();
  /// Of the next element, or with any order of any element, if there is one. `mutex_` is held.
  [[nodiscard]] std::optional<std::size_t> take_done_slot();
  void stop();

  Read read_;
  Work work_;
  bool keep_order_;

  EventCount slot_is_free_;
  EventCount slot_is_done_;
  std::mutex reading_;  // held while reading, and taken before `mutex_`
  std::mutex mutex_;    // guards what follows
  std::vector<Slot> slots_;
  std::vector<std::size_t> free_;
  std::deque<std::size_t> pending_;  // not yet taken, in the order of reading
  bool source_ended_ = false;
  bool stopped_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace cohort::detail
