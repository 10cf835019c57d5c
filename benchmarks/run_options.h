// What both the sweeps and the profile are told: on what memory, by whom, against whom, and
// where the report goes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <cohort/device/dtype.h>

#include "report.h"

namespace cohort::bench {

/// The memory of Cohort's tensors.
enum class MemoryKind {
  kHeap,     ///< Cohort's own, as Tensor::uninitialized gives it
  kPrivate,  ///< ordinary memory, as a program has it that knows nothing of Cohort's
};

[[nodiscard]] constexpr std::string_view to_string(MemoryKind kind) {
  return kind == MemoryKind::kHeap ? "heap" : "private";
}

struct RunOptions {
  DType dtype = DType::kFloat32;
  MemoryKind memory = MemoryKind::kHeap;
  bool huge_pages = true;      ///< of private memory, the peer's included
  std::optional<int> threads;  ///< members are so many threads of this process, not ranks
  bool peer = true;            ///< compare with MPI
  bool reproducible = false;   ///< Cohort's results do not depend on the layout
  Format format = Format::kTable;
  std::optional<std::string> output;
};

}  // namespace cohort::bench
