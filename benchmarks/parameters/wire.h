// A plain TCP connection between the chief and a worker on another host: what the wire between the two
// carries when nothing stands between the program and its sockets. One thread at each end.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cluster/fd.h"
#include "parameters/server_job.h"

namespace cohort::bench {

class Wire {
 public:
  /// Occupies all workers of `job` until it ends, for any of them may be the one on `host`.
  /// @throws Unavailable when none is.
  Wire(ServerJob& job, const std::string& host);

  /// Sends so many bytes to the other end, which then sends so many back.
  /// @throws Unavailable when the connection is lost.
  void exchange(std::size_t sent, std::size_t received);

 private:
  std::string host_;
  watch::Fd connection_;
  std::vector<std::byte> buffer_;
};

}  // namespace cohort::bench
