#include "shared_comms.h"

#include <algorithm>
#include <exception>

#include <cohort/base/error.h>

namespace cohort::mpi {
namespace {

#ifdef OPEN_MPI
constexpr const char* kName = "btl_tcp_eager_limit";
#else  // MPICH and its kin
constexpr const char* kName = "MPIR_CVAR_CH3_EAGER_MAX_MSG_SIZE";
#endif

constexpr std::size_t kUsualLimit = std::size_t{64} << 10;

/// Shorter messages would pay their fixed cost too often, longer ones fill the caches.
constexpr std::size_t kShortest = std::size_t{4} << 10;
constexpr std::size_t kLongest = std::size_t{256} << 10;

}  // namespace

std::size_t longest_message_below(std::size_t limit) noexcept {
  return std::clamp(limit / 8 * 7, kShortest, kLongest) / kShortest * kShortest;
}

std::size_t longest_eager_message() {
  // Asked once: the library then registers the variables of all its parts, which takes Open MPI 0.2 s.
  static const std::size_t bytes = longest_message_below(control_variable(kName).value_or(kUsualLimit));
  return bytes;
}

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
