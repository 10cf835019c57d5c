// What is in a folder of checkpoints, and whether it is sound. Any thread may ask; checkpoints that are being
// written are not seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cohort {

struct FoundCheckpoint {
  std::int64_t step = 0;
  std::string path = {};
};

/// The checkpoints in `folder`, by step; sound ones and others. None when there is no such folder.
/// @throws Unavailable when it cannot be read.
[[nodiscard]] std::vector<FoundCheckpoint> list_checkpoints(const std::string& folder);

/// Reads every byte of the checkpoint at `path`, and compares it with its checksums. Returns a sentence for
/// each thing that is wrong, which names file and value; nothing if all is well.
[[nodiscard]] std::vector<std::string> verify_checkpoint(const std::string& path);

}  // namespace cohort
