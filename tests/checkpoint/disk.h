// The disk of a test: this program's own fsync(), which can be held up, or fail as a broken disk does.
#pragma once

#include <string>

namespace cohort::testing {

/// While it lives, everything that is synced waits. The first of a save is the file of the values.
class HeldDisk {
 public:
  HeldDisk();
  ~HeldDisk() { let_go(); }
  HeldDisk(const HeldDisk&) = delete;
  HeldDisk& operator=(const HeldDisk&) = delete;

  static void let_go();
};

/// While it lives, the `nth` sync of a file or folder whose path ends so is EIO.
class BrokenDisk {
 public:
  explicit BrokenDisk(const std::string& path_ending, int nth = 1);
  ~BrokenDisk();
  BrokenDisk(const BrokenDisk&) = delete;
  BrokenDisk& operator=(const BrokenDisk&) = delete;
};

}  // namespace cohort::testing
