// Measures one collective over a range of sizes, as one member among several.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <cohort/collective/reduce_op.h>

#include "environment.h"
#include "harness.h"
#include "option_values.h"
#include "report.h"
#include "report/comparison.h"
#include "run_context.h"

namespace cohort::bench {

struct SweepOptions {
  const Collective* collective = nullptr;
  SizeRange sizes = {};
  ReduceOp op = ReduceOp::kSum;
  bool in_place = false;
  HarnessOptions harness = {};
  int rounds = 1;  ///< times that all sizes are measured, one after the other
};

/// What was measured of one library at one size: a row of the report.
struct SweepRow {
  std::string collective;
  std::string library;    ///< `cohort`, `mpi` or `nccl`
  std::string algorithm;  ///< what carried out the calls, or the peer's function
  std::string choice;     ///< why that one: `size`, `model`, `probe`, `file`, `forced` or `library`
  std::string dtype;
  std::string op;
  int members = 0;
  std::size_t bytes = 0;  ///< of the largest buffer of a member
  std::size_t elements = 0;
  bool in_place = false;
  std::string inputs;   ///< `rewritten` before each call, or `kept`
  std::string buffers;  ///< `heap`, `private` or `gpu`
  int loops = 0;        ///< of each round
  int iterations = 0;   ///< of each loop

  // Of the slowest member. The time of a loop is the mean of its calls.
  double median_us = 0;     ///< over the loops of all rounds
  double min_us = 0;        ///< over the loops
  double p99_us = 0;        ///< over all single calls; of several rounds, the median
  double iteration_us = 0;  ///< median over the loops, with writing the input and reading the result
  std::vector<double> rounds_us = {};  ///< of each round: the median of its loops

  double algbw_gbs = 0;
  double busbw_gbs = 0;
  std::optional<double> ratio_to_peer;  ///< the other library's median over this one's
  std::optional<std::uint64_t> wrong;   ///< wrong elements, over all members and checked calls

  /// What the machine's memory allows for this size, for an all-reduce in place.
  std::optional<double> memory_limit_us;
};

/// Written row by row, for a sweep may take long.
class SweepReport {
 public:
  virtual ~SweepReport() = default;

  /// `subject` says in words what is measured against what.
  virtual void begin(const Environment& environment, const std::string& subject) = 0;
  virtual void add(const SweepRow& row) = 0;
  /// A remark on the results.
  virtual void note(const std::string& text) = 0;
  virtual void compare(const Comparison& comparison) = 0;
  virtual void end() = 0;
};

/// `stream` outlives the report.
[[nodiscard]] std::unique_ptr<SweepReport> make_sweep_report(Format format, std::ostream& stream);

/// What a JSON report has.
class SweepDocument final : public SweepReport {
 public:
  SweepDocument() = default;
  /// What an earlier run has written.
  explicit SweepDocument(Json json) : json_(std::move(json)) {}

  void begin(const Environment& environment, const std::string& subject) override;
  void add(const SweepRow& row) override;
  void note(const std::string& text) override;
  void compare(const Comparison& comparison) override;
  void end() override {}

  [[nodiscard]] const Json& json() const { return json_; }

 private:
  Json json_;
};

/// What is measured against what, in words.
[[nodiscard]] std::string describe(const SweepOptions& sweep, const RunOptions& run);

/// Called by all members. @throws AgreedError when results are wrong, or a member has too little memory.
void run_sweep(const SweepOptions& options, const RunOptions& run, const MemberContext& context);

}  // namespace cohort::bench
