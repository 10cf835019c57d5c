// The options that sweeps and profiles share: the elements, their memory, the members, the peer, and the
// report.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <cohort/device/device.h>
#include <cohort/device/dtype.h>

#include "peer.h"

namespace cohort::bench {

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
};

/// What the report calls the memory of Cohort's tensors.
[[nodiscard]] constexpr std::string_view buffers_of(const RunOptions& run) {
  return run.device == DeviceKind::kCuda ? "gpu" : to_string(run.memory);
}

}  // namespace cohort::bench
