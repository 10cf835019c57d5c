#include "worker_group.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/collective/network_communicator.h>

#include "channels.h"
#include "meeting_guard.h"
#include "mpi_communicator.h"
#include "mpi_transport.h"

namespace cohort::mpi {
namespace {

std::vector<MemberInfo> to_members(std::span<const WorkerInfo> workers) {
  std::vector<MemberInfo> members;
  for (const WorkerInfo& worker : workers) members.push_back({worker.rank, worker.host});
  return members;
}

/// What a worker says when a group is split.
struct Choice {
  int color = 0;
  int key = 0;
};

/// The infos of `ranks`, numbered anew, with nodes and places on them.
std::vector<WorkerInfo> renumbered(std::span<const WorkerInfo> workers, std::span<const int> ranks) {
  std::vector<WorkerInfo> members;
  std::map<int, int> nodes;
  std::map<int, int> on_node;
  for (const int rank : ranks) {
    WorkerInfo worker = workers[static_cast<std::size_t>(rank)];
    worker.rank = static_cast<int>(members.size());
    worker.node = nodes.try_emplace(worker.node, static_cast<int>(nodes.size())).first->second;
    worker.local_rank = on_node[worker.node]++;
    members.push_back(std::move(worker));
  }
  return members;
}

}  // namespace

WorkerGroup::WorkerGroup(std::shared_ptr<Runtime> runtime, Comm comm, std::vector<WorkerInfo> workers,
                         std::string communicator)
    : runtime_(std::move(runtime)),
      comm_(std::move(comm)),
      workers_(std::move(workers)),
      rank_(comm_rank(comm_.get())),
      communicator_(std::move(communicator)) {
  exchange_.emplace(runtime_, comm_.get(), workers_);
}

WorkerGroup::~WorkerGroup() {
  // Freeing it may wait for members that are gone or have failed.
  if (std::uncaught_exceptions() > 0 || runtime_->fault() != nullptr || (exchange_ && exchange_->failed()))
    comm_.leak();
  exchange_.reset();
  const Gate::Pass pass = runtime_->gate().enter();
  comm_ = Comm();
}

void WorkerGroup::connect_memory() {
  node_memory_ =
      NodeMemory::connect(rank_, workers_, [this](std::string_view blob) { return exchange(blob); });
  own_algorithms_ = nodes_share_memory() && communicator_ == "auto";
}

void WorkerGroup::close() {
  exchange_->wait_for_end();
  exchange_.reset();
  const Gate::Pass pass = runtime_->gate().enter();
  comm_ = Comm();
}

std::unique_ptr<Communicator> WorkerGroup::make_communicator(const CommunicationOptions& options) {
  return std::move(make_communicators(options, 1).front());
}

bool WorkerGroup::on_one_node() const { return std::ranges::max(workers_, {}, &WorkerInfo::node).node == 0; }

std::unique_ptr<Bootstrap> WorkerGroup::split(int color, int key) {
  const Choice own{color, key};
  std::string blob(sizeof own, '\0');
  std::memcpy(blob.data(), &own, sizeof own);
  std::vector<Choice> choices(workers_.size());
  const std::vector<std::string> blobs = exchange_->all_gather(Purpose::kSplit, blob);
  for (std::size_t i = 0; i < blobs.size(); ++i) std::memcpy(&choices[i], blobs[i].data(), sizeof own);

  std::vector<int> ranks;
  for (std::size_t i = 0; i < choices.size(); ++i)
    if (choices[i].color == color) ranks.push_back(static_cast<int>(i));
  std::ranges::stable_sort(ranks, {}, [&](int rank) { return choices[static_cast<std::size_t>(rank)].key; });

  Comm comm;
  {
    const MeetingGuard guard(config().collective_timeout(), "in a split of a group of workers");
    const Gate::Pass pass = runtime_->gate().enter();
    comm = Comm::of_members(comm_.get(), ranks);
  }
  auto group =
      std::make_unique<WorkerGroup>(runtime_, std::move(comm), renumbered(workers_, ranks), communicator_);
  group->connect_memory();
  return group;
}

std::vector<std::string> WorkerGroup::exchange(std::string_view blob) {
  return exchange_->all_gather(Purpose::kExchange, blob);
}

std::vector<std::unique_ptr<Communicator>> WorkerGroup::make_communicators(
    const CommunicationOptions& options, int members) {
  // What is wrong by itself is refused before anyone is waited for.
  static_cast<void>(options.deadline());
  if (members < 1)
    throw InvalidArgument("a communicator needs at least one member per worker, not {}", members);
  const std::vector<Terms> terms =
      exchange_terms({members, options.reproducible ? 1 : 0, runtime_->gate().any_thread() ? 1 : 0});
  require_same_terms(terms, workers_);
  if (own_algorithms_ && on_one_node()) return make_node_communicators(node_options(options, members));
  if (own_algorithms_) {
    if (members > 1) require_threads_may_communicate(terms);
    const auto channels = std::make_shared<Channels>(runtime_, comm_.get(), members);
    const auto transport = [&channels](int rank) { return std::make_unique<MpiTransport>(channels, rank); };
    return make_network_communicators({node_options(options, members), transport});
  }
  if (members > 1) {
    throw Unimplemented(
        "{} members on each worker: MPI's own collectives, {}, know one member per worker. Start one worker "
        "per "
        "member (mpirun -n {})",
        members,
        communicator_ == "auto" ? "which have to do as workers of a node cannot map each other's memory"
                                : "which COHORT_COMMUNICATOR asks for",
        workers_.size() * static_cast<std::size_t>(members));
  }
  std::vector<std::unique_ptr<Communicator>> seats;
  seats.push_back(
      std::make_unique<MpiCommunicator>(runtime_, comm_.get(), rank_, to_members(workers_), options));
  return seats;
}

std::vector<Terms> WorkerGroup::exchange_terms(const Terms& own) {
  const std::vector<std::string> blobs =
      exchange_->all_gather(Purpose::kMakeCommunicator, {reinterpret_cast<const char*>(&own), sizeof own});
  std::vector<Terms> terms(workers_.size());
  for (std::size_t i = 0; i < blobs.size(); ++i) std::memcpy(&terms[i], blobs[i].data(), sizeof own);
  return terms;
}

void WorkerGroup::require_threads_may_communicate(std::span<const Terms> by_worker) const {
  const auto without = std::ranges::find(by_worker, 0, &Terms::any_thread);
  if (without == by_worker.end()) return;
  throw WrongContext(
      "members that are threads, on several nodes, call MPI from their own threads, one at a time; on {} MPI "
      "was "
      "initialised for a single thread. Initialise it with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, let "
      "the "
      "Session do it, or start one worker per member",
      describe(workers_[static_cast<std::size_t>(without - by_worker.begin())]));
}

bool WorkerGroup::nodes_share_memory() {
  const int node = workers_[static_cast<std::size_t>(rank_)].node;
  const bool alone = std::ranges::count(workers_, node, &WorkerInfo::node) == 1;
  const std::vector<std::string> answers = exchange(alone || node_memory_->shared() ? "yes" : "no");
  return std::ranges::count(answers, "yes") == static_cast<std::ptrdiff_t>(answers.size());
}

NodeGroupOptions WorkerGroup::node_options(const CommunicationOptions& options, int members) {
  NodeGroupOptions group;
  group.memory = node_memory_;
  group.workers = workers_;
  group.rank = rank_;
  group.members = members;
  group.exchange = [this](std::string_view blob) { return exchange(blob); };
  group.fault = [runtime = runtime_] { return runtime->fault(); };
  group.communication = options;
  return group;
}

}  // namespace cohort::mpi
