// For calls on memory that the harness cannot write and read, and that the host cannot time: on a GPU. The
// input is copied there before a call, and the result back afterwards, outside the time of the call.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace cohort::bench {

/// The limit on the time of a call that has no deadline of its own.
struct CallLimit {
  std::string call;  ///< for the error: `ncclAllReduce of 4096 bytes, member 1 of 2`
  double seconds = 0;
};

class OffHost {
 public:
  virtual ~OffHost() = default;

  /// Copies the input there; it is there on return.
  virtual void bring() const = 0;

  /// Makes the call, waits for its result, and returns how long that took there, in nanoseconds.
  /// @throws DeadlineExceeded naming the call when it has not ended within the limit; it is then still under
  /// way.
  [[nodiscard]] virtual std::uint64_t time(const std::function<void()>& call,
                                           const std::optional<CallLimit>& limit) const = 0;

  /// Copies the result back; it is back on return.
  virtual void fetch() const = 0;
};

}  // namespace cohort::bench
