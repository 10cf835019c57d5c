// Which server's method a thread runs: it would wait for itself if it called that server.
#pragma once

#include <cstdint>

namespace cohort::rpc {

/// Marks the calling thread as running a method of the server with this incarnation, while it lives.
class RunningMethod {
 public:
  explicit RunningMethod(std::uint64_t incarnation) noexcept;
  ~RunningMethod();
  RunningMethod(const RunningMethod&) = delete;
  RunningMethod& operator=(const RunningMethod&) = delete;
};

[[nodiscard]] bool is_running_method_of(std::uint64_t incarnation) noexcept;

}  // namespace cohort::rpc
