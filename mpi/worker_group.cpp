#include "worker_group.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <cohort/base/config.h>
#include <cohort/base/error.h>

#include "collective/host_communicators.h"
#include "process_end.h"
#include "transport/mpi_transport.h"
#include "transport/shared_comms.h"

namespace cohort::mpi {

WorkerGroup::WorkerGroup(std::shared_ptr<MpiEnvironment> environment, Comm comm,
                         std::vector<WorkerInfo> workers)
    : environment_(std::move(environment)),
      comm_(std::move(comm)),
      workers_(std::move(workers)),
      rank_(comm_rank(comm_.get())) {
  exchange_.emplace(environment_, comm_.get(), workers_, config().collective_timeout());
}

WorkerGroup::~WorkerGroup() {
  // Freeing it may wait for members that are gone or have failed.
  if (std::uncaught_exceptions() > 0 || environment_->fault() != nullptr ||
      (exchange_ && exchange_->leaves_messages()))
    comm_.leak();
  exchange_.reset();
  try {
    const MpiLock::Guard guard = environment_->lock().acquire();
    comm_ = Comm();
  } catch (const std::exception&) {
    comm_.leak();  // the Session has ended, or this thread may not call MPI
  }
}

void WorkerGroup::connect_memory() {
  const auto exchange_blobs = [this](std::string_view blob) { return exchange(blob); };
  node_memory_ = NodeMemory::connect(rank_, workers_, exchange_blobs);
  nodes_ = with_nodes_by_memory(workers_, node_memory_->shared(), exchange_blobs);
}

void WorkerGroup::close() {
  exchange_->wait_for_end();
  // What is still on its way must not arrive on a communicator that is made later.
  if (exchange_->leaves_messages()) comm_.leak();
  exchange_.reset();
  const MpiLock::Guard guard = environment_->lock().acquire();
  comm_ = Comm();
}

std::unique_ptr<Communicator> WorkerGroup::make_communicator(const CommunicationOptions& options) {
  return std::move(make_communicators(options, 1).front());
}

bool WorkerGroup::on_one_node() const { return std::ranges::max(nodes_, {}, &WorkerInfo::node).node == 0; }

bool WorkerGroup::neighbours_are_apart() const {
  return !std::ranges::equal(nodes_, workers_, {}, &WorkerInfo::node, &WorkerInfo::node);
}

std::unique_ptr<Bootstrap> WorkerGroup::split(int color, int key) {
  const std::vector<int> ranks =
      ranks_of_color(exchange_->all_gather(RoundKind::kSplit, to_blob(SplitChoice{color, key})), color);

  Comm comm;
  {
    const HangWatchdog watchdog(config().collective_timeout(), "in a split of a group of workers");
    const MpiLock::Guard guard = environment_->lock().acquire();
    comm = Comm::of_members(comm_.get(), ranks);
  }
  auto group = std::make_unique<WorkerGroup>(environment_, std::move(comm), renumbered(workers_, ranks));
  group->connect_memory();
  return group;
}

std::vector<std::string> WorkerGroup::exchange(std::string_view blob) {
  return exchange_->all_gather(RoundKind::kExchange, blob);
}

std::vector<std::unique_ptr<Communicator>> WorkerGroup::make_communicators(
    const CommunicationOptions& options, int members) {
  // What is wrong by itself is refused before anyone is waited for.
  static_cast<void>(options.deadline());
  if (members < 1)
    throw InvalidArgument("a communicator needs at least one member per worker, not {}", members);
  const std::vector<AgreedSettings> settings =
      exchange_settings({members, options.reproducible, environment_->lock().any_thread()});
  require_same_settings(workers_, settings);
  if (on_one_node()) return make_node_communicators(node_options(options, members));
  if (members > 1) require_threads_may_communicate(settings);
  std::shared_ptr<SharedComms> comms;
  {
    const HangWatchdog watchdog(config().collective_timeout(),
                                "while a communicator over several nodes is made");
    comms = std::make_shared<SharedComms>(environment_, comm_.get(), members, neighbours_are_apart());
  }
  const auto transport = [&comms](int rank) { return std::make_unique<MpiTransport>(comms, rank); };
  return make_network_communicators({node_options(options, members), transport});
}

std::vector<AgreedSettings> WorkerGroup::exchange_settings(const AgreedSettings& own) {
  return settings_in(exchange_->all_gather(RoundKind::kMakeCommunicator, to_blob(own)));
}

void WorkerGroup::require_threads_may_communicate(std::span<const AgreedSettings> by_worker) const {
  const auto without = std::ranges::find(by_worker, false, &AgreedSettings::any_thread);
  if (without == by_worker.end()) return;
  throw WrongContext(
      "members that are threads, on several nodes, call MPI from their own threads, one at a time; on {} "
      "MPI was initialised for a single thread. Initialise it with MPI_THREAD_SERIALIZED or "
      "MPI_THREAD_MULTIPLE, let the Session do it, or start one worker per member",
      describe(workers_[static_cast<std::size_t>(without - by_worker.begin())]));
}

NodeGroupOptions WorkerGroup::node_options(const CommunicationOptions& options, int members) {
  NodeGroupOptions group;
  group.memory = node_memory_;
  group.workers = nodes_;
  group.rank = rank_;
  group.members = members;
  group.exchange = [this](std::string_view blob) { return exchange(blob); };
  group.fault = [environment = environment_] { return environment->fault(); };
  group.on_failure = [environment = environment_] { environment->note_failure(); };
  group.observer = observer_;
  group.communication = options;
  return group;
}

}  // namespace cohort::mpi
