// Who looks at the records of a communicator's members while these go on, without their help. A group of
// members shows its records to the observer of its process when it is made, and takes them back before a
// member leaves.
#pragma once

#include <string>
#include <vector>

#include "member_record.h"

namespace cohort {

/// The members of a communicator on one node.
struct ObservedGroup {
  const void* id = nullptr;
  std::string communicator = {};
  std::vector<const MemberRecord*> records = {};  ///< of this node's members
  std::vector<int> workers = {};                  ///< of the whole communicator, by rank
  /// More members than cores: the time at which a member comes says little of it.
  bool shares_cores = false;
};

class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void add(ObservedGroup group) = 0;
  /// When it returns, nobody reads the group's records any more.
  virtual void remove(const void* id) noexcept = 0;
  /// A line for each worker or link that makes the others wait at present, as far as this process was told.
  [[nodiscard]] virtual std::vector<std::string> slow_workers() const = 0;
};

}  // namespace cohort
