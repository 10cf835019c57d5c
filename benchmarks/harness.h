// Checks and times a collective at one size, with one library and with its peer in turns.
//
// A loop is what training does, over and over: write the whole input, with other values each
// time; call; read the whole result, and compare it. The clock runs during the call only, and
// no barrier stands before it. The time of a loop is the mean of its calls on the slowest member,
// and the figure is the median of several loops, in which the libraries take turns.
//
// Knows nothing of Cohort: what is called is a function. Nor of GPUs: their memory is behind an OffHost.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collective.h"
#include "team.h"
#include "timing.h"
#include "value_table.h"

namespace cohort::bench {

/// The limit on the time of a call that has no deadline of its own.
struct CallLimit {
  std::string call;  ///< for the error: `ncclAllReduce of 4096 bytes, member 1 of 2`
  double seconds = 0;
};

/// For calls on memory that the harness cannot write and read, and that the host cannot time: on a GPU. The
/// input is copied there before a call, and the result back afterwards, outside the time of the call.
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

enum class Inputs {
  kRewritten,  ///< before each call, as a training step does
  kKept,       ///< left alone: flatters what reads a peer's memory, since its caches stay clean
};

[[nodiscard]] constexpr std::string_view to_string(Inputs inputs) {
  return inputs == Inputs::kRewritten ? "rewritten" : "kept";
}

struct HarnessOptions {
  Inputs inputs = Inputs::kRewritten;
  bool check = true;
  int loops = 5;
  std::optional<int> iterations = {};  ///< of a loop; unset: as many as a fixed time allows
};

/// A library that is measured, with buffers of its own.
struct Contender {
  std::span<std::byte> input;
  std::span<std::byte> output;  ///< in place, the same memory as the input or a part of the other
  std::function<void()> call;
  const OffHost* off_host = nullptr;    ///< null when the call works on the input and the output themselves
  std::optional<CallLimit> limit = {};  ///< on calls off the host that have no deadline
};

/// The same on all members.
struct Measurement {
  int iterations = 0;           ///< of each loop
  std::vector<double> call_us;  ///< of each loop: the mean of its calls, on the slowest member
  std::vector<double>
      iteration_us;               ///< of each loop: the same, with writing the input and reading the result
  std::vector<double> single_us;  ///< of all calls: each on its slowest member
  std::optional<std::uint64_t>
      wrong;  ///< wrong elements over all members and checked calls; unset: not checked
};

/// In how many of some calls of `barrier` a member left before the last one came; the same on all
/// members. It takes a clock that all members share, so on several nodes there is no answer.
[[nodiscard]] std::optional<std::uint64_t> count_early_leavers(const std::function<void()>& barrier,
                                                               const Team& team);

/// Measures every contender on all members. `clock` outlives the call.
[[nodiscard]] std::vector<Measurement> measure(const Collective& collective, const Role& role,
                                               const ValueSource& values,
                                               std::span<const Contender> contenders,
                                               const HarnessOptions& options, const Team& team,
                                               const TickClock& clock);

}  // namespace cohort::bench
