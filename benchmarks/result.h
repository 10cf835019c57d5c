// What was measured of one library at one size: a row of the report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cohort::bench {

struct Result {
  std::string collective;
  std::string library;    ///< `cohort` or `mpi`
  std::string algorithm;  ///< the communicator's name, or the peer's function
  std::string dtype;
  std::string op;
  int members = 0;
  std::size_t bytes = 0;  ///< of the largest buffer of a member
  std::size_t elements = 0;
  bool in_place = false;
  std::string inputs;  ///< `rewritten` before each call, or `kept`
  int iterations = 0;

  // Over the iterations, of the slowest member of each.
  double median_us = 0;
  double min_us = 0;
  double p99_us = 0;
  double iteration_us = 0;  ///< median of writing the input, the call, and reading the result

  double algbw_gbs = 0;
  double busbw_gbs = 0;
  std::optional<double> ratio_to_peer;  ///< the other library's median over this one's
  std::optional<std::uint64_t> wrong;   ///< wrong elements, over all members and checked calls
};

}  // namespace cohort::bench
