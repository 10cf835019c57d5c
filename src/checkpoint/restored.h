// What one restore found; shared by the Checkpoint and the handles of its status.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "manifest.h"

namespace cohort::checkpoint {

struct Restored {
  Restored(std::string from, Manifest content) : path(std::move(from)), manifest(std::move(content)) {}
  /// Warns of what is left, unless the program has looked at it.
  ~Restored();
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

  std::string path;
  Manifest manifest;
  std::set<std::string> missing = {};
  std::set<std::string> left_over = {};
  bool is_judged = true;  ///< or not restored yet
};

}  // namespace cohort::checkpoint
