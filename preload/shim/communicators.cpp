#include "communicators.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>

namespace cohort::preload {
namespace {

/// For a thread that waits in one of Cohort's calls: MPI's own messages go on only while somebody is in one of
/// its functions, and the member that is waited for may wait for such a message.
void move_mpi_on() {
  constexpr int kAnyTag = 0;
  int found = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, kAnyTag, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

/// What each member says of itself when a group is made.
struct MemberWord {
  std::uint64_t node = 0;  ///< 0: this rank is in no node's session
  std::int64_t rank = -1;  ///< in the node
  std::uint64_t group = 0;  ///< the number of the group, if this rank is the first in it
};

void check(int status, const char* what) {
  if (status != MPI_SUCCESS) throw Unavailable("{} of the MPI library failed with code {}", what, status);
}

}  // namespace

Communicators& Communicators::of_this_process() {
  static auto* const all = new Communicators;  // outlives what is called at the end of the process
  return *all;
}

void Communicators::start() {
  try {
    const ServedCalls calls = served_calls();
    if (calls == ServedCalls::kNone) return;
    only_exact_ = calls == ServedCalls::kExact;
  } catch (const InvalidArgument& error) {
    logging::error("{}", error.what());
    PMPI_Abort(MPI_COMM_WORLD, 2);
  }
  try {
    start_node();
  } catch (const std::exception& error) {
    logging::warning("collectives of this node are those of the MPI: {}", error.what());
  }
  const auto copy_to_none = [](MPI_Comm, int, void*, void*, void*, int* flag) {
    *flag = 0;
    return MPI_SUCCESS;
  };
  if (PMPI_Comm_create_keyval(copy_to_none, &Communicators::forget, &keyval_, nullptr) != MPI_SUCCESS) return;
  is_running_.store(true, std::memory_order_release);
}

void Communicators::start_node() {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0;
  int size = 0;
  check(PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
        "MPI_Comm_split_type");
  check(PMPI_Comm_rank(node, &rank), "MPI_Comm_rank");
  check(PMPI_Comm_size(node, &size), "MPI_Comm_size");
  if (size > 1) {
    node_ = std::make_unique<NodeRanks>(rank, size, [node](std::span<std::byte> bytes) {
      check(PMPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, node), "MPI_Bcast");
    });
  }
  PMPI_Comm_free(&node);
}

bool Communicators::stop() {
  if (!is_running_.exchange(false)) return false;
  // All have made their last call then, and nobody is taken for lost.
  PMPI_Barrier(MPI_COMM_WORLD);
  for (ServedCommunicator& served : all_) release(served);
  node_.reset();
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == 0 && config().run_numbers();
}

ServedCommunicator* Communicators::find_slowly(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return nullptr;
  void* value = nullptr;
  int found = 0;
  if (PMPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&value), &found) != MPI_SUCCESS) return nullptr;
  if (found == 0) {
    ServedCommunicator& made = unused();
    connect(comm, made);
    if (PMPI_Comm_set_attr(comm, keyval_, &made) != MPI_SUCCESS) return nullptr;
    value = &made;
  }
  auto* const served = static_cast<ServedCommunicator*>(value);
  served->comm.store(comm, std::memory_order_relaxed);
  known_[place_of(comm)].store(served, std::memory_order_release);
  return served;
}

/// Collective over the communicator's members, which come to the same result.
void Communicators::connect(MPI_Comm comm, ServedCommunicator& served) {
  int is_inter = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_rank(comm, &served.rank);
  PMPI_Comm_size(comm, &served.size);
  if (is_inter != 0 || served.size == 1) {
    served.reason = is_inter != 0 ? "intercommunicator" : "one rank";
    return;
  }
  MemberWord own;
  if (node_) own = {node_->id(), node_->rank(), ++groups_};
  std::vector<MemberWord> members(static_cast<std::size_t>(served.size));
  if (PMPI_Allgather(&own, sizeof own, MPI_BYTE, members.data(), sizeof own, MPI_BYTE, comm) != MPI_SUCCESS) {
    served.reason = "the MPI has failed";
    return;
  }
  const MemberWord& first = members.front();
  const auto is_of_node = [&](const MemberWord& member) {
    return member.node != 0 && member.node == first.node;
  };
  if (!std::ranges::all_of(members, is_of_node)) {
    served.reason = first.node == 0 ? "no session on a node" : "several nodes";
    return;
  }
  std::vector<int> ranks;
  for (const MemberWord& member : members) ranks.push_back(static_cast<int>(member.rank));
  try {
    served.communicator =
        node_->make_communicator(ranks, fmt::format("MPI {}.{}", first.rank, first.group), &move_mpi_on);
  } catch (const std::exception& error) {
    logging::warning("the collectives of a communicator are those of the MPI: {}", error.what());
  }
  int all_have_one = served.communicator ? 1 : 0;
  const int own_has_one = all_have_one;
  PMPI_Allreduce(&own_has_one, &all_have_one, 1, MPI_INT, MPI_MIN, comm);
  if (all_have_one == 0) {
    served.communicator.reset();
    served.reason = "its ranks cannot share memory";
  }
}

ServedCommunicator& Communicators::unused() {
  const std::lock_guard lock(mutex_);
  for (ServedCommunicator& served : all_) {
    if (served.size == 0) {
      served.size = 1;
      return served;
    }
  }
  all_.emplace_back().size = 1;
  return all_.back();
}

void Communicators::release(ServedCommunicator& served) {
  const std::lock_guard lock(mutex_);
  served.comm.store({}, std::memory_order_relaxed);
  served.communicator.reset();
  served.size = 0;
}

int Communicators::forget(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*state*/) {
  of_this_process().release(*static_cast<ServedCommunicator*>(value));
  return MPI_SUCCESS;
}

int fail(MPI_Comm comm, const char* function, const std::exception& error) {
  logging::error("{}: {}", function, error.what());
  const std::string text = fmt::format("{}: {}", function, error.what())
                               .substr(0, static_cast<std::size_t>(MPI_MAX_ERROR_STRING) - 1);
  int code = MPI_ERR_OTHER;
  if (PMPI_Add_error_code(MPI_ERR_OTHER, &code) == MPI_SUCCESS) PMPI_Add_error_string(code, text.c_str());
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace cohort::preload
