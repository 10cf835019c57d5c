// What was measured of one library at one size: a row of the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cohort::bench {

struct Result {
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
  int loops = 0;
  int iterations = 0;  ///< of each loop

  // Of the slowest member. The time of a loop is the mean of its calls.
  double median_us = 0;     ///< over the loops
  double min_us = 0;        ///< over the loops
  double p99_us = 0;        ///< over all single calls
  double iteration_us = 0;  ///< median over the loops, with writing the input and reading the result

  double algbw_gbs = 0;
  double busbw_gbs = 0;
  std::optional<double> ratio_to_peer;  ///< the other library's median over this one's
  std::optional<std::uint64_t> wrong;   ///< wrong elements, over all members and checked calls

  /// What the machine's memory allows for this size, for an all-reduce in place.
  std::optional<double> memory_limit_us;
};

}  // namespace cohort::bench
