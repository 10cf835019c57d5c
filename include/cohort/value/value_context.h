// A ValueContext says for which replica a function makes a value: the argument of the
// function given to `Strategy::distribute_values_from_function`.
#pragma once

#include <ostream>

namespace cohort {

struct ValueContext {
  int replica_id_in_sync_group = 0;  ///< among the replicas of all workers
  int num_replicas_in_sync = 1;

  /// For example `ValueContext(replica id 1, total replicas in sync: 4)`.
  friend std::ostream& operator<<(std::ostream& stream, const ValueContext& context) {
    return stream << "ValueContext(replica id " << context.replica_id_in_sync_group
                  << ", total replicas in sync: " << context.num_replicas_in_sync << ")";
  }
};

}  // namespace cohort
