// Threads that work ahead of a consumer, for stages that read or compute in the background. A stage has a few
// slots. Each holds one element: it is read (one at a time, in order), worked on (many at once), and taken by
// the consumer. Reading waits for a free slot, which bounds memory.
//
// The threads live as long as the stage. Its destructor waits for the elements that they are working on.
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
  std::size_t slots = 1;   ///< elements in the stage at a time
  bool keep_order = true;  ///< elements are taken in the order of reading, otherwise as they are done
};

class ParallelStage {
 public:
  /// Reads the next element into the slot; false at the end. Never called by two threads at once.
  using Read = std::function<bool(std::size_t slot)>;
  /// Works on the element of a slot, on any of the threads.
  using Work = std::function<void(std::size_t slot)>;
  /// Takes a finished element, on the consumer's thread.
  using Take = std::function<void(std::size_t slot)>;

  /// @throws Unavailable when the threads cannot be started.
  ParallelStage(const ParallelStageOptions& options, Read read, Work work);
  ~ParallelStage();
  ParallelStage(const ParallelStage&) = delete;
  ParallelStage& operator=(const ParallelStage&) = delete;

  /// Waits for the next element and calls `take` with its slot; false at the end. Throws what reading or
  /// working on that element threw; the next call continues with the following element.
  [[nodiscard]] bool next(const Take& take);

 private:
  struct Slot {
    bool done = false;
    std::exception_ptr error;
  };

  void serve();
  /// Reads into a free slot and returns it; nothing when there is no more to do.
  [[nodiscard]] std::optional<std::size_t> read_one();
  /// Nothing when no more are needed.
  [[nodiscard]] std::optional<std::size_t> wait_for_free_slot();
  /// The slot of the next element, or in any order of any finished one; nothing when it is not done. `mutex_`
  /// is held.
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
