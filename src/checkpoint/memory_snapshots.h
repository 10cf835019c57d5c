// Checkpoints in the shared memory of the hosts, which outlive the workers: `cohort-run --restarts` names the
// folder, and removes it when the job ends. Each host has whole ones, written by the workers there, so one
// host that is left is enough.
//
//     FOLDER/HOST/0123456789abcdef/step-7     the job's folder, the host, and the folder on disk, hashed
//
// One thread at a time, that of the CheckpointManager.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <cohort/checkpoint/checkpoint.h>

#include "checkpoint/format/folder.h"
#include "workers.h"

namespace cohort::checkpoint {

class MemorySnapshots {
 public:
  /// Of the workers that save to `folder_on_disk`; `folder` is the job's, and is made if it is not there.
  /// Collective over the workers, as all functions.
  /// @throws Unavailable when there can be none on some host, naming it.
  MemorySnapshots(const Workers& workers, const std::string& folder, const std::string& host,
                  const std::string& folder_on_disk);

  /// Writes a snapshot to every host, which then has the newest two. A host that cannot, for example because
  /// its memory is full, logs a warning and keeps an older one.
  /// @throws InvalidArgument where workers have other values.
  void save(const Workers& workers, const std::map<std::string, NamedValue>& values, std::int64_t step);

  /// The newest step of which some host has a sound snapshot. Hosts that have another or none get a copy.
  /// Returns the path on this worker's host; nothing when there is no snapshot. @throws Unavailable.
  [[nodiscard]] std::optional<FoundCheckpoint> find_newest(const Workers& workers);

 private:
  [[nodiscard]] Workers on_host(const Workers& workers) const;
  [[nodiscard]] std::string judge() const;
  void make_room(std::int64_t step) const;
  void copy_from(const Workers& workers, int source, std::int64_t step, bool is_wanted) const;

  std::string folder_;                        ///< of this host
  std::unique_ptr<Communicator> neighbours_;  ///< the workers of this host; null where there is one worker
  std::unique_ptr<WriterLock> lock_;          ///< of the first worker on each host; null on the others
};

}  // namespace cohort::checkpoint
