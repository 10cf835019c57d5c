// What one member of a run works with: its communicator, its team, its peer and its clock.
#pragma once

#include <string_view>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/collective/communicator.h>

#include "off_host.h"
#include "peer.h"
#include "team.h"
#include "tick_clock.h"

namespace cohort::bench {

class Output;

struct MemberContext {
  Communicator* communicator = nullptr;
  const Team* team = nullptr;
  Device device = {};                 ///< where its tensors are
  const PeerLibrary* peer = nullptr;  ///< null when there is none to compare with
  int members_on_node = 1;            ///< this member and those that share its memory
  const TickClock* clock = nullptr;
  Output* output = nullptr;  ///< null on all but member 0

  [[nodiscard]] int rank() const { return communicator->rank(); }
  [[nodiscard]] int size() const { return communicator->size(); }
  [[nodiscard]] bool all_on_one_node() const { return members_on_node == size(); }

  /// The limit on a call of the peer on a GPU, which has no deadline of its own: that of Cohort's calls.
  [[nodiscard]] CallLimit limit_of(std::string_view function, std::size_t bytes) const {
    return {.call = fmt::format("{} of {} bytes, member {} of {},", function, bytes, rank(), size()),
            .seconds = config().collective_timeout().count()};
  }
};

}  // namespace cohort::bench
