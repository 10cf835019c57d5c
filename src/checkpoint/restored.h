// What one restore found; shared by the Checkpoint and the handles of its status.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/piece_reader.h"

namespace cohort::checkpoint {

struct Restored {
  Restored(std::string from, Manifest content) : path(std::move(from)), manifest(std::move(content)) {}
  /// Warns of what is left, unless the program has looked at it.
  ~Restored();
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

  /// Keeps open the files of what is left over, and no others: it can be read later, also when the checkpoint
  /// has been removed meanwhile. @throws as PieceReader::read.
  void keep_left_over();

  /// Is left over no more.
  void take(const std::string& name);

  std::string path;
  Manifest manifest;
  std::set<std::string> missing = {};
  std::set<std::string> left_over = {};
  std::optional<PieceReader> reader = {};  ///< nothing when nothing is left over
  bool is_judged = true;                   ///< or not restored yet
};

}  // namespace cohort::checkpoint
