// Where a contender's calls work when that is not the memory which the harness writes and reads, nor
// the time that the host sees: on a GPU. The input is brought there before a call and the result
// fetched afterwards, outside of the time of the call.
#pragma once

#include <cstdint>
#include <functional>

namespace cohort::bench {

class OffHost {
 public:
  virtual ~OffHost() = default;

  /// Copies the input there; it is there on return.
  virtual void bring() const = 0;

  /// Makes the call, waits for its result, and returns how long that took there, in nanoseconds.
  [[nodiscard]] virtual std::uint64_t time(const std::function<void()>& call) const = 0;

  /// Copies the result back; it is back on return.
  virtual void fetch() const = 0;
};

}  // namespace cohort::bench
