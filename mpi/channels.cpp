#include "channels.h"

#include <exception>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "eager_limit.h"
#include "meeting_guard.h"

namespace cohort::mpi {

Channels::Channels(std::shared_ptr<Runtime> runtime, MPI_Comm comm, int members)
    : runtime_(std::move(runtime)), members_(members) {
  const Gate::Pass pass = gate().enter();
  const std::int64_t pairs = std::int64_t{members} * members;
  if (pairs * (kNoteTag + 1) - 1 > largest_tag(comm)) {
    throw Unimplemented(
        "{} members of one worker are more than the tags of this MPI (up to {}) can tell apart; start more "
        "workers with fewer members each",
        members, largest_tag(comm));
  }
  collectives_ = Comm::duplicate(comm);
  messages_ = Comm::duplicate(comm);
  message_bytes_ = static_cast<std::size_t>(all_reduce_min(static_cast<int>(longest_eager_message()), comm));
}

std::shared_ptr<Channels> Channels::split(std::span<const int> workers) const {
  if (members_ > 1) {
    throw Unimplemented(
        "groups over several nodes of a communicator with {} members on each worker; make the group of one "
        "with "
        "a member per worker, or keep it on a node",
        members_);
  }
  const MeetingGuard guard(config().collective_timeout(), "in a split of a communicator");
  const Gate::Pass pass = gate().enter();
  Comm collectives = Comm::of_members(collectives_.get(), workers);
  Comm messages = Comm::duplicate(collectives.get());
  return std::shared_ptr<Channels>(
      new Channels(runtime_, std::move(collectives), std::move(messages), message_bytes_));
}

Channels::~Channels() {
  // MPI gives the identity of a communicator that is freed to the next one, which would then get what is
  // still on its way.
  if (!left_open_) {
    try {
      const Gate::Pass pass = gate().enter();
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
