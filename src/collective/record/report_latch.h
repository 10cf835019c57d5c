// Sees to it that the members of a node make one report of a failure, and not one each: the loss of a worker
// ends all communicators that it was in, and what fails soon after a report is taken for its consequence.
// Lies in the node heap, where all processes of a node use that of one of them; kept for the life of the
// process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace cohort {

class ReportLatch {
 public:
  /// This process's own.
  [[nodiscard]] static ReportLatch& of_this_process();

  /// Where it lies in this process's heap; nothing where others cannot see it.
  [[nodiscard]] std::optional<std::uint64_t> offset() const;

  /// The number of the report that the caller is to make, from 1; nothing if one has been made in the last
  /// ten seconds. Any member of the node may call it.
  [[nodiscard]] std::optional<int> claim() noexcept;

 private:
  std::atomic<std::int64_t> last_{0};  ///< when the latest report was begun, by steady_clock; 0: none yet
  std::atomic<int> reports_{0};
};

}  // namespace cohort
