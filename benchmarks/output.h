// What rank 0 prints: the report, to standard output or a file, and complaints to standard error.
#pragma once

#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "coordinator/coordinator.h"
#include "dispatch/dispatch.h"
#include "environment.h"
#include "input/input.h"
#include "parameters/parameters.h"
#include "profile/profile.h"
#include "run_options.h"
#include "sweep/sweep.h"
#include "training/sharded_optimizer.h"
#include "training/trainer.h"

namespace cohort::bench {

/// One line on standard error, marked with the program's name.
void complain(const std::string& text);

class Output {
 public:
  /// @throws UsageError when the output file cannot be written.
  explicit Output(const RunOptions& run);

  void begin(const Environment& environment, const std::string& subject);
  void add(std::span<const SweepRow> rows);
  void note(const std::string& text);

  /// The whole report of one of the other modes, instead of the above.
  void write(const Environment& environment, const ProfileResult& result);
  void write(const Environment& environment, const DispatchResult& result);
  void write(const Environment& environment, const InputResult& result);
  void write(const Environment& environment, const CoordinatorResult& result);
  void write(const Environment& environment, const ParametersResult& result);
  void write(const Environment& environment, const CheckpointResult& result);
  void write(const Environment& environment, const ShardedOptimizerResult& result);
  void write(const Environment& environment, const TrainerResult& result);

  /// Completes the reports; there is nothing to do the second time. False when something could not
  /// be written, unless its reader wants no more, as `head` after some lines.
  [[nodiscard]] bool end();

 private:
  /// `write_to(format, stream)` to all that the report goes to.
  template <class WriteTo>
  void write_whole(const Environment& environment, WriteTo write_to);

  Format format_;
  std::ofstream file_;
  std::vector<std::unique_ptr<SweepReport>> reports_;
  bool environment_to_stderr_ = false;  ///< CSV has no place for it
};

}  // namespace cohort::bench
