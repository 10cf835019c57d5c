// What a simulated network is: how long a message is on its way, and what goes wrong.
#pragma once

#include <cstddef>

namespace cohort::simulation {

/// A message leaves by its node's link, whose direction it has to itself for its bytes, and at least for
/// `gap_seconds`; it crosses the links of both nodes' groups if these differ, and arrives by the other node's
/// link. Members of a node share its link. Each link passes messages in the order in which they were sent.
struct NetworkModel {
  double latency_seconds = 2e-6;                      ///< between any two nodes
  double seconds_per_byte = 0.08e-9;                  ///< of a node's link: 100 Gbit/s
  double gap_seconds = 0.2e-6;                        ///< at least, between two messages of a node
  std::size_t eager_bytes = std::size_t{8} << 10;     ///< longer messages wait for their receives
  int nodes_of_group = 0;                             ///< nodes below one switch; 0: all
  double taper = 1;                                   ///< nodes' bandwidth over that of their group's link
  std::size_t message_bytes = std::size_t{56} << 10;  ///< longest message of a long collective
};

/// From a time on, counted from the beginning of the simulation.
struct Fault {
  enum class Kind {
    kDelay,      ///< messages of `node` take `seconds` longer
    kKill,       ///< `member` does nothing any more
    kCut,        ///< nothing passes between `node` and `other`
    kPartition,  ///< nothing passes between the nodes up to `node` and those after it
  };
  Kind kind = Kind::kDelay;
  double at_seconds = 0;
  int member = 0;
  int node = 0;
  int other = 0;
  double seconds = 0;
};

}  // namespace cohort::simulation
