// The numbers of a run: how many calls of each kind its workers have made, with how many bytes, and how the
// workers have spent their time. Each process that reads records has those of its node, always from the
// beginning of the run, so that a later account replaces an earlier one; the chief adds up those of all. They
// are read as a table, or as the text of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/cluster/worker.h>
#include <cohort/collective/collective_kind.h>

#include "collective/choice/choice_log.h"

namespace cohort {

/// Of all members together. Where a reader has missed calls, bytes and seconds are estimates.
struct KindNumbers {
  double calls = 0;
  double bytes = 0;    ///< a call's elements times their size: of what has a block per member, one block
  double seconds = 0;  ///< between a member's coming to a call and its end; not known of messages
};

/// Of a worker, in seconds.
struct WorkerNumbers {
  double elapsed = 0;
  /// In blocking calls and in waits for asynchronous ones. Where a worker has several members of a
  /// communicator, on threads of their own, the mean over these.
  double communication = 0;
  double input = 0;  ///< as InputWait counts it

  [[nodiscard]] double compute() const noexcept;  ///< all the rest
};

struct RunNumbers {
  std::array<KindNumbers, kCollectiveKinds> kinds{};  ///< by CollectiveKind
  double calls = 0;                                   ///< of all kinds but messages
  double seen = 0;                                    ///< of these, with their times
  std::map<int, WorkerNumbers> workers = {};          ///< by rank

  /// With those that another process has read.
  void add(const RunNumbers& other);
};

/// Least, mean and greatest over workers.
struct Spread {
  double least = 0;
  double mean = 0;
  double most = 0;
  int of_least = -1;  ///< the worker that has it
  int of_most = -1;
};
[[nodiscard]] Spread spread_of(const std::map<int, double>& by_worker);

/// What a process tells the chief, in as many notes as it takes; each says something for itself. `reader`:
/// the worker that has read.
[[nodiscard]] std::vector<std::string> to_notes(const RunNumbers& numbers, int reader);

/// Puts what a note says in the place of what the same reader has said before. False for what is no such
/// note.
bool hear(std::string_view note, std::map<int, RunNumbers>& by_reader);

/// A table for people: lines, each with its end. `workers` are all of the job by rank, `seconds` is how long
/// it took, `choices` are the chief's.
[[nodiscard]] std::string table_of(const RunNumbers& numbers, std::span<const WorkerInfo> workers,
                                   double seconds, std::span<const LoggedChoice> choices);

/// The text format of Prometheus, version 0.0.4, for the text-file collector of its node exporter. Always the
/// same series, from the first file on, whatever the job does; docs/what-went-wrong.md lists them.
[[nodiscard]] std::string prometheus_text(const RunNumbers& numbers, std::span<const WorkerInfo> workers,
                                          double seconds);

}  // namespace cohort
