#include "shared_comms.h"

#include <exception>

#include <cohort/base/error.h>

#include "eager_limit.h"

namespace cohort::mpi {

SharedComms::SharedComms(std::shared_ptr<MpiEnvironment> environment, MPI_Comm comm, int members,
                         bool neighbours_are_apart)
    : environment_(std::move(environment)), members_(members), neighbours_are_apart_(neighbours_are_apart) {
  const MpiLock::Guard guard = lock().acquire();
  workers_ = comm_size(comm);
  const std::int64_t pairs = std::int64_t{members} * members;
  groups_ = (std::int64_t{largest_tag(comm)} + 1) / (pairs * (kControlTag + 1));
  if (groups_ == 0) {
    throw Unimplemented(
        "{} members of one worker are more than the tags of this MPI (up to {}) can tell apart; start more "
        "workers with fewer members each",
        members, largest_tag(comm));
  }
  collectives_ = Comm::duplicate(comm);
  messages_ = Comm::duplicate(comm);
  message_bytes_ = static_cast<std::size_t>(all_reduce_min(static_cast<int>(longest_eager_message()), comm));
}

SharedComms::~SharedComms() {
  // MPI gives the identity of a communicator that is freed to the next one, which would then get what is
  // still on its way.
  if (!left_open_) {
    try {
      const MpiLock::Guard guard = lock().acquire();
      collectives_ = Comm();
      messages_ = Comm();
      return;
    } catch (const std::exception&) {  // this thread may not call MPI
    }
  }
  collectives_.leak();
  messages_.leak();
}

}  // namespace cohort::mpi
