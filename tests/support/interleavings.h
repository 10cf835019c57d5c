// Many collectives in flight on several communicators at once, in an order that a seed
// decides. Within a communicator all members start them in the same order, as they must;
// between communicators every member has an order of its own. Every result is checked.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <cohort/collective/communicator.h>

namespace cohort::testing {

enum class WaitOrder {
  kSame,    ///< every member waits for them in the same random order
  kPolled,  ///< every member asks in a random order of its own which are done, and never waits
  kOwn,     ///< every member waits in a random order of its own
};

/// Adds all members in reverse, and the group of this member among those of odd and of even ranks.
inline void add_groups(std::vector<std::unique_ptr<Communicator>>& communicators) {
  Communicator& everyone = *communicators.front();
  communicators.push_back(everyone.split(0, -everyone.rank()));
  communicators.push_back(everyone.split(everyone.rank() % 2));
}

/// All members call it together, with equally many communicators and the same seed; the first has all
/// members, others may be groups of some of them. Reports through GoogleTest what it finds wrong.
void check_interleaved(std::span<const std::unique_ptr<Communicator>> communicators, unsigned seed,
                       WaitOrder order);

}  // namespace cohort::testing
