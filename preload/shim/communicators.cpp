#include "communicators.h"

#include <algorithm>
#include <exception>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>

#include "../program_memory.h"
#include "mpi_calls.h"

namespace cohort::preload {
namespace {

/// That this thread's call of the MPI ends.
thread_local MPI_Comm ending_comm = {};

/// What each member says of itself when a group is made.
struct MemberWord {
  std::uint64_t node = 0;   ///< 0: this rank is in no node's session, or serves as many as it may
  std::int64_t rank = -1;   ///< in the node
  std::uint64_t group = 0;  ///< the number of the group, if this rank is the first in it
};

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
    mpi::abort_job(2);
  }
  try {
    static_cast<void>(mpi::own_comm());
    start_node();
    keyval_ = mpi::create_keyval(&Communicators::forget);
  } catch (const std::exception& error) {
    logging::warning("the collectives of this node are those of the MPI: {}", error.what());
    node_.reset();
  }
  is_running_.store(keyval_ != 0, std::memory_order_release);
}

void Communicators::start_node() {
  node_comm_ = mpi::node_of_world();
  const int size = mpi::size(node_comm_);
  const auto broadcast = [this](std::span<std::byte> bytes) { mpi::broadcast(bytes, node_comm_); };
  if (size > 1) node_ = std::make_unique<NodeRanks>(mpi::rank(node_comm_), size, broadcast);
  if (size == mpi::size(MPI_COMM_WORLD)) ProgramMemory::of_this_process().start();
}

/// For a thread that waits in one of Cohort's calls: who is waited for may wait for a message of this rank.
void Communicators::move_mpi_on() { mpi::make_progress(of_this_process().node_comm_); }

bool Communicators::stop() {
  if (!is_running_.exchange(false)) return false;
  try {
    // Who still calls a collective finds out.
    for (const ServedCommunicator& served : all_) {
      if (served.communicator) note_call_of_mpi(*served.communicator, "MPI_Finalize");
    }
    // All have made their last call then, and nobody is taken for lost.
    mpi::barrier(MPI_COMM_WORLD);
    for (ServedCommunicator& served : all_) release(served);
    node_.reset();
    return mpi::rank(MPI_COMM_WORLD) == 0 && config().run_numbers();
  } catch (const std::exception& error) {
    logging::warning("the end of MPI: {}", error.what());
    return false;
  }
}

ServedCommunicator* Communicators::find_slowly(MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_NULL || comm == ending_comm) return nullptr;
  try {
    auto* served = static_cast<ServedCommunicator*>(mpi::attribute(comm, keyval_));
    if (served == nullptr) {
      served = &unused();
      served->rank = mpi::rank(comm);
      served->size = mpi::size(comm);
      mpi::set_attribute(comm, keyval_, served);
    }
    served->comm.store(comm, std::memory_order_relaxed);
    known_[place_of(comm)].store(served, std::memory_order_release);
    return served;
  } catch (const std::exception& error) {
    logging::warning("a collective is the MPI's: {}", error.what());
    return nullptr;
  }
}

void Communicators::decide(MPI_Comm comm, ServedCommunicator& served, bool depends_on_order) {
  if (served.calls < kCallsBefore && !depends_on_order) return;
  served.is_decided = true;
  try {
    connect(comm, served);
  } catch (const Error& error) {
    logging::warning("the collectives of a communicator are those of the MPI: {}", error.what());
  }
}

/// Collective over the communicator's members, which come to the same result.
void Communicators::connect(MPI_Comm comm, ServedCommunicator& served) {
  if (served.size == 1 || mpi::is_inter(comm)) return;
  MemberWord own;
  if (node_ && served_ < kMostServed) own = {node_->id(), node_->rank(), ++groups_};
  std::vector<MemberWord> members(static_cast<std::size_t>(served.size));
  mpi::all_gather(own, std::span(members), comm);
  const MemberWord& first = members.front();
  const auto is_with_first = [&](const MemberWord& member) {
    return member.node != 0 && member.node == first.node;
  };
  if (!std::ranges::all_of(members, is_with_first)) return;
  std::vector<int> ranks;
  ranks.reserve(members.size());
  for (const MemberWord& member : members) ranks.push_back(static_cast<int>(member.rank));
  std::unique_ptr<Communicator> made;
  try {
    made = node_->make_communicator(ranks, fmt::format("MPI {}.{}", first.rank, first.group),
                                    &Communicators::move_mpi_on);
  } catch (const std::exception& error) {
    logging::warning("the collectives of a communicator are those of the MPI: {}", error.what());
  }
  if (!mpi::all_say(made != nullptr, comm)) return;
  served.communicator = std::move(made);
  served.eager_bytes = eager_bytes(*served.communicator);
  ++served_;
}

ServedCommunicator& Communicators::unused() {
  const std::lock_guard lock(mutex_);
  for (ServedCommunicator& served : all_) {
    if (served.is_free) {
      served.is_free = false;
      return served;
    }
  }
  return all_.emplace_back();
}

void Communicators::release(ServedCommunicator& served) {
  const std::lock_guard lock(mutex_);
  served.comm.store({}, std::memory_order_relaxed);
  if (served.communicator) --served_;
  served.communicator.reset();
  served.blocks = {};
  served.gathered = {};
  served.is_decided = false;
  served.calls = 0;
  served.is_free = true;
}

void Communicators::begin_end_of(MPI_Comm comm) noexcept {
  if (!is_running_ || comm == MPI_COMM_NULL) return;
  try {
    if (mpi::attribute(comm, keyval_) != nullptr) mpi::delete_attribute(comm, keyval_);
  } catch (const Error&) {
    return;  // no communicator, as the MPI is about to say
  }
  ending_comm = comm;
}

void Communicators::finish_end() noexcept { ending_comm = {}; }

int Communicators::forget(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*state*/) {
  of_this_process().release(*static_cast<ServedCommunicator*>(value));
  return MPI_SUCCESS;
}

int fail(MPI_Comm comm, const char* function, const std::exception& error) {
  const std::string text = fmt::format("{}: {}", function, error.what());
  logging::error("{}", text);
  const int code = mpi::make_error(text);
  mpi::call_error_handler(comm, code);
  return code;
}

}  // namespace cohort::preload
