// The blocks of MPI_Alltoallv, whose sizes only their sender and their receiver know: in rooms of equal size,
// each with a header, so that afterwards all members know how large the blocks of all are, and go on alike.
#pragma once

#include <cstddef>
#include <vector>

#include <cohort/collective/communicator.h>

#include "datatypes.h"

namespace cohort::preload {

/// What a communicator keeps for such calls.
struct UnevenBlocks {
  std::vector<Elements> to;     ///< of the call that is made: the block for each member
  std::vector<Elements> from;   ///< and that of each one
  bool in_place = false;        ///< they are the same memory
  std::size_t room_bytes = 64;  ///< with the header; the same on all members
  int left_to_mpi =
      0;  ///< so many of the next calls, which are likely to be like the last ones; on all members
  int left_in_row = 0;  ///< how many they were the last time
  std::vector<std::byte> outgoing;
  std::vector<std::byte> incoming;
};

/// Collective. False, on all members and with nothing written, if the MPI is to carry the call out: its
/// blocks differ too much, and are too large. @throws InvalidArgument where a block is not as large as its
/// receiver says.
[[nodiscard]] bool exchange(Communicator& communicator, UnevenBlocks& blocks);

}  // namespace cohort::preload
