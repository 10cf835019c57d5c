// The record of one collective: everything that the harness has to know to check it, time it
// and compare it with its peer. A new collective is one file with one such record, which is
// declared here and listed in collectives.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <cohort/collective/communicator.h>

#include "exact_values.h"

namespace cohort::bench {

class MpiGroup;

/// One size of a sweep, as one member sees it.
struct Problem {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  std::size_t elements = 0;  ///< of the largest buffer of a member
  int member = 0;
  int members = 1;
  int members_on_node = 1;  ///< this member and those that share its memory
};

struct Collective {
  std::string_view command;  ///< on the command line, for example `all-reduce`
  std::string_view name;     ///< in results, for example `all_reduce`
  std::string_view text;     ///< one line for --help
  std::string_view peer;     ///< the function that it is compared with

  bool in_place = false;  ///< one buffer is input and output

  double (*bus_factor)(int members) = nullptr;

  /// Elements of this member's buffers; the same in both when in place.
  std::size_t (*input_elements)(const Problem& problem) = nullptr;
  std::size_t (*output_elements)(const Problem& problem) = nullptr;

  void (*run)(Communicator& communicator, const Problem& problem, const Tensor& input,
              const Tensor& output) = nullptr;

  /// Empty, or why the peer cannot do this: then it is left out of the comparison.
  std::string (*why_no_peer)(const Problem& problem) = nullptr;
  void (*run_peer)(const MpiGroup& group, const Problem& problem, std::span<std::byte> input,
                   std::span<std::byte> output) = nullptr;

  void (*write_input)(const ExactValues& values, std::span<std::byte> input) = nullptr;
  std::uint64_t (*count_wrong)(const ExactValues& values, std::span<const std::byte> output) = nullptr;
};

extern const Collective kAllReduce;

/// Every collective that can be measured, in the order of --help.
[[nodiscard]] std::span<const Collective* const> collectives();

}  // namespace cohort::bench
