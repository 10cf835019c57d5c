// What a run is asked for, and what carries it out: the options that sweeps and profiles share (the elements,
// their memory, the members, the peer, the report), and what a member or a command works with.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/collective/communicator.h>
#include <cohort/device/device.h>
#include <cohort/device/dtype.h>

#include "harness.h"
#include "peer.h"
#include "team.h"
#include "timing.h"

namespace cohort::mpi {
class Session;
}

namespace cohort::bench {

struct Model;
class Output;

/// The memory of Cohort's tensors on the CPU.
enum class MemoryKind {
  kHeap,     ///< Cohort's own, as Tensor::uninitialized gives it
  kPrivate,  ///< ordinary memory, as a program without Cohort would allocate it
};

[[nodiscard]] constexpr std::string_view to_string(MemoryKind kind) {
  return kind == MemoryKind::kHeap ? "heap" : "private";
}

/// The form of the report.
enum class Format { kTable, kCsv, kJson };

[[nodiscard]] constexpr std::string_view to_string(Format format) {
  switch (format) {
    case Format::kTable: return "table";
    case Format::kCsv: return "csv";
    case Format::kJson: return "json";
  }
  return "unknown";
}

struct RunOptions {
  DType dtype = DType::kFloat32;
  DeviceKind device = DeviceKind::kCpu;  ///< where the tensors are
  MemoryKind memory = MemoryKind::kHeap;
  bool huge_pages = true;           ///< of private memory, the peer's included
  std::optional<int> threads = {};  ///< set: the members are this many threads of one process, not ranks
  Peer peer = Peer::kMpi;           ///< what to compare with
  bool reproducible = false;        ///< Cohort's results do not depend on the placement
  Format format = Format::kTable;
  std::optional<std::string> output = {};
  std::optional<std::string> page = {};     ///< file for the report as a page
  std::vector<std::string> baselines = {};  ///< files of earlier results
  std::optional<double> fail_below = {};  ///< the part of a baseline's speed from which on a size is too slow
};

/// What the report calls the memory of Cohort's tensors.
[[nodiscard]] constexpr std::string_view buffers_of(const RunOptions& run) {
  return run.device == DeviceKind::kCuda ? "gpu" : to_string(run.memory);
}

/// What a command may use beside its own options.
struct CommandContext {
  mpi::Session& session;
  const TickClock& clock;
  std::chrono::duration<double> session_took{0};  ///< to be made, MPI_Init included
  const Model* model = nullptr;                   ///< of a command that takes one
};

/// What one member of a sweep or a profile works with: its communicator, its team, its peer and its clock.
struct MemberContext {
  Communicator* communicator = nullptr;
  const Team* team = nullptr;
  Device device = {};                 ///< where its tensors are
  const PeerLibrary* peer = nullptr;  ///< null when there is none to compare with
  int members_on_node = 1;            ///< this member and those that share its memory
  const TickClock* clock = nullptr;
  Output* output = nullptr;  ///< null on all but member 0

  [[nodiscard]] int rank() const { return communicator->rank(); }
  [[nodiscard]] int size() const { return communicator->size(); }
  [[nodiscard]] bool all_on_one_node() const { return members_on_node == size(); }

  /// The limit on a call of the peer on a GPU, which has no deadline of its own: that of Cohort's calls.
  [[nodiscard]] CallLimit limit_of(std::string_view function, std::size_t bytes) const {
    return {.call = fmt::format("{} of {} bytes, member {} of {},", function, bytes, rank(), size()),
            .seconds = config().collective_timeout().count()};
  }
};

}  // namespace cohort::bench
