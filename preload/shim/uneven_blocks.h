// The blocks of MPI_Alltoallv, whose sizes only their sender and their receiver know: in rooms of equal size,
// each with a header, so that afterwards all members know how large the blocks of all are, and go on alike.
#pragma once

#include <cstddef>
#include <vector>

#include <cohort/collective/communicator.h>

#include "datatypes.h"

namespace cohort::preload {

/// What a communicator keeps for such calls, which it makes one after the other; a ServedCommunicator owns
/// it.
struct UnevenBlocks {
  static constexpr std::size_t kLeastRoom = 64;

  std::vector<Elements> to;    ///< of the call that is made: the block for each member
  std::vector<Elements> from;  ///< and that of each one
  bool in_place = false;       ///< they are the same memory

  // The same on all members.
  std::size_t room_bytes = kLeastRoom;  ///< with the header
  int left_to_mpi = 0;  ///< so many of the next calls, which are likely to be like the last ones
  int left_in_row = 0;  ///< how many they were the last time

  std::vector<std::byte> outgoing;
  std::vector<std::byte> incoming;
};

/// Collective. False, on all members and with nothing written, if the MPI is to carry the call out: its
/// blocks differ too much, and are too large. @throws InvalidArgument where a block is not as large as its
/// receiver says.
[[nodiscard]] bool exchange(Communicator& communicator, UnevenBlocks& blocks);

}  // namespace cohort::preload
