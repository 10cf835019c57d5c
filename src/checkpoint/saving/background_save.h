// A save that a thread writes while the program goes on. The threads of the workers meet on a communicator of
// their own, so that what they do there has no order among the calls of the program.
//
// Used by the thread that has the Checkpoint. A save ends on all workers with the same error, if any.
#pragma once

#include <exception>
#include <memory>
#include <thread>

#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>

#include "checkpoint/workers.h"
#include "checkpoint_writer.h"

namespace cohort::checkpoint {

class BackgroundSave {
 public:
  BackgroundSave() = default;
  /// Waits, and logs a failure.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Copies what `writer` writes, and has a thread write it. None is under way. Collective over the workers.
  void start(const Workers& workers, std::unique_ptr<CheckpointWriter> writer);

  /// Until the save has ended. @throws what went wrong, once. Not collective.
  void wait();

 private:
  void make_group(const Workers& workers);

  std::unique_ptr<Communicator> group_;  ///< of the threads; null for one worker
  Tensor memory_;                        ///< for the copy
  std::exception_ptr failure_;           ///< written by the thread
  std::thread thread_;
};

}  // namespace cohort::checkpoint
