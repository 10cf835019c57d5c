#include <cohort/rendezvous/session.h>

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cohort/base/config.h>
#include <cohort/base/log.h>
#include <cohort/collective/communicator.h>

#include "cluster/agreement.h"
#include "cluster/peer_watch.h"
#include "collective/host_communicators.h"
#include "device/node_memory.h"
#include "group_exchange.h"
#include "observation/job_observer.h"
#include "start.h"
#include "transport/tcp_transport.h"

namespace cohort::rendezvous {
namespace {

/// What all groups of a Session share, and what ends with the last of them.
class Cluster {
 public:
  explicit Cluster(SessionOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  [[nodiscard]] const Error* fault() const noexcept { return faults_ ? faults_->fault() : nullptr; }
  [[nodiscard]] const std::shared_ptr<const FaultRecord>& faults() const noexcept { return faults_; }
  [[nodiscard]] const std::vector<WorkerInfo>& workers() const noexcept { return started_.workers; }
  /// The workers with the nodes that communicators have: each of those that cannot share memory has its own.
  [[nodiscard]] const std::vector<WorkerInfo>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] int rank() const noexcept { return options_.rank; }
  [[nodiscard]] std::chrono::duration<double> timeout() const noexcept { return options_.timeout; }
  [[nodiscard]] const std::shared_ptr<const NodeMemory>& memory() const noexcept { return memory_; }
  [[nodiscard]] const std::shared_ptr<Links>& links() const noexcept { return started_.links; }
  [[nodiscard]] const remote::Address& address(int rank) const {
    return started_.addresses[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::shared_ptr<GroupExchange> exchange() const noexcept { return started_.exchange; }
  /// Of the calls of all workers; may be null.
  [[nodiscard]] const std::shared_ptr<JobObserver>& observer() const noexcept { return observer_; }

 private:
  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob) {
    return started_.exchange->all_gather(RoundKind::kExchange, blob);
  }
  void watch_others();
  void connect_memory();

  const SessionOptions options_;
  const int exceptions_at_start_ = std::uncaught_exceptions();
  std::shared_ptr<const FaultRecord> faults_;
  Started started_;
  std::unique_ptr<PeerWatch> watch_;
  std::shared_ptr<const NodeMemory> memory_;
  std::vector<WorkerInfo> nodes_;
  std::shared_ptr<JobObserver> observer_;
};

Cluster::Cluster(SessionOptions options)
    : options_(std::move(options)), started_(start(options_, [this] { return fault(); })) {
  if (options_.size > 1) watch_others();
  connect_memory();
  if (options_.observed)
    observer_ = JobObserver::of_job(nodes_, options_.rank, watch_.get(), options_.names_stragglers);
  const int nodes = std::ranges::max(nodes_, {}, &WorkerInfo::node).node + 1;
  logging::debug("session '{}' of {} worker{} on {} node{}", options_.prefix, options_.size,
                 options_.size == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s");
}

Cluster::~Cluster() {
  const bool ends_well = std::uncaught_exceptions() <= exceptions_at_start_;
  if (observer_) observer_->stop();
  if (watch_ && !ends_well) watch_->announce_failure("an exception ended its Session");
  if (watch_ && ends_well && watch_->leave_within(options_.leave_timeout) && observer_) observer_->conclude();
  // Communicators that outlive this keep the observer, which must not need the watch any more.
  if (observer_) observer_->fall_silent();
}

void Cluster::watch_others() {
  const Config& settings = config();
  PeerWatchOptions watch;
  watch.rank = options_.rank;
  watch.workers = started_.workers;
  watch.exchange = [this](std::string_view blob) { return exchange(blob); };
  watch.grace = std::nullopt;
  watch.handle_signals = false;
  watch.beat = std::chrono::duration_cast<std::chrono::milliseconds>(settings.heartbeat());
  watch.silence =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.silence.value_or(settings.silence()));
  watch_ = std::make_unique<PeerWatch>(std::move(watch));
  faults_ = watch_->record();
}

void Cluster::connect_memory() {
  const auto exchange_blobs = [this](std::string_view blob) { return exchange(blob); };
  memory_ = NodeMemory::connect(options_.rank, started_.workers, exchange_blobs);
  nodes_ = with_nodes_by_memory(started_.workers, memory_->shared(), exchange_blobs);
}

/// In a process that was forked from the worker nothing ends: the threads, the connections and the workers
/// that would be told are the parent's.
std::shared_ptr<Cluster> make_cluster(SessionOptions options) {
  return {new Cluster(std::move(options)), [process = ::getpid()](Cluster* cluster) {
            if (::getpid() == process) delete cluster;
          }};
}

class Members final : public Group {
 public:
  /// All workers.
  explicit Members(std::shared_ptr<Cluster> cluster)
      : cluster_(std::move(cluster)),
        ranks_(cluster_->workers().size()),
        workers_(cluster_->workers()),
        nodes_(cluster_->nodes()),
        memory_(cluster_->memory()),
        rank_(cluster_->rank()),
        exchange_(cluster_->exchange()) {
    std::iota(ranks_.begin(), ranks_.end(), 0);
    observer_ = cluster_->observer();
  }

  /// Those with these ranks in the session; `rank` is this process's place among them. Collective over them.
  Members(std::shared_ptr<Cluster> cluster, std::string name, std::vector<int> ranks, int rank);

  [[nodiscard]] std::span<const WorkerInfo> workers() const override { return workers_; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob) override {
    return exchange_->all_gather(RoundKind::kExchange, blob);
  }
  [[nodiscard]] std::unique_ptr<Communicator> make_communicator(
      const CommunicationOptions& options) override {
    return std::move(make_communicators(options, 1).front());
  }
  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members) override;
  [[nodiscard]] std::unique_ptr<Bootstrap> split(int color, int key) override;
  [[nodiscard]] std::unique_ptr<Group> make_group(std::span<const int> ranks, std::string_view name) override;
  [[nodiscard]] const Error* fault() const noexcept override { return cluster_->fault(); }

 private:
  [[nodiscard]] std::vector<int> session_ranks(std::span<const int> ranks) const;
  [[nodiscard]] NodeGroupOptions node_options(const CommunicationOptions& options, int members);
  /// The name that no other group of this one's members has for what is made of it.
  [[nodiscard]] std::string name_within(std::string_view name) const {
    return fmt::format("{}/{}", name_, name);
  }

  std::shared_ptr<Cluster> cluster_;
  std::string name_ = kEveryone;
  std::vector<int> ranks_;  ///< in the session
  std::vector<WorkerInfo> workers_;
  std::vector<WorkerInfo> nodes_;
  std::shared_ptr<const NodeMemory> memory_;
  int rank_;
  std::shared_ptr<GroupExchange> exchange_;
  std::shared_ptr<RecordObserver> observer_;
  int splits_ = 0;
  int communicators_ = 0;  ///< that were made
};

Members::Members(std::shared_ptr<Cluster> cluster, std::string name, std::vector<int> ranks, int rank)
    : cluster_(std::move(cluster)),
      name_(std::move(name)),
      ranks_(std::move(ranks)),
      workers_(renumbered(cluster_->workers(), ranks_)),
      nodes_(renumbered(cluster_->nodes(), ranks_)),
      memory_(NodeMemory::of_group(cluster_->memory(), ranks_, rank)),
      rank_(rank) {
  std::vector<int> everyone(cluster_->workers().size());
  std::iota(everyone.begin(), everyone.end(), 0);
  if (ranks_ == everyone) observer_ = cluster_->observer();
  GroupExchangeOptions options;
  options.name = options.title = name_;
  options.ranks = ranks_;
  options.rank = rank_;
  options.timeout = cluster_->timeout();
  options.fault = [cluster = cluster_.get()] { return cluster->fault(); };
  exchange_ = std::make_shared<GroupExchange>(cluster_->links(), std::move(options));
  exchange_->set_members(workers_);
  exchange_->connect(cluster_->address(ranks_.front()));
  // Whoever passes other ranks takes another worker for the first, or differs here.
  const std::vector<std::string> said =
      exchange_->all_gather(RoundKind::kStart, fmt::format("{}", fmt::join(ranks_, ", ")));
  require_same_group(workers_, said);
}

std::vector<int> Members::session_ranks(std::span<const int> ranks) const {
  std::vector<int> chosen;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= size())
      throw InvalidArgument("a group of ranks of {} cannot have rank {}", size(), rank);
    const int in_session = ranks_[static_cast<std::size_t>(rank)];
    if (std::ranges::find(chosen, in_session) != chosen.end())
      throw InvalidArgument("a group cannot have rank {} twice", rank);
    chosen.push_back(in_session);
  }
  return chosen;
}

std::unique_ptr<Group> Members::make_group(std::span<const int> ranks, std::string_view name) {
  std::vector<int> chosen = session_ranks(ranks);
  const auto own = std::ranges::find(ranks, rank_);
  if (own == ranks.end()) {
    throw InvalidArgument("{} makes the group '{}' of ranks {} without being one of them",
                          describe(workers_[static_cast<std::size_t>(rank_)]), name, fmt::join(ranks, ", "));
  }
  return std::make_unique<Members>(cluster_, name_within(name), std::move(chosen),
                                   static_cast<int>(own - ranks.begin()));
}

std::unique_ptr<Bootstrap> Members::split(int color, int key) {
  const std::vector<int> ranks =
      ranks_of_color(exchange_->all_gather(RoundKind::kSplit, to_blob(SplitChoice{color, key})), color);
  return make_group(ranks, fmt::format("split {}: {}", ++splits_, color));
}

std::vector<std::unique_ptr<Communicator>> Members::make_communicators(const CommunicationOptions& options,
                                                                       int members) {
  // What is wrong by itself is refused before anyone is waited for.
  static_cast<void>(options.deadline());
  if (members < 1)
    throw InvalidArgument("a communicator needs at least one member per worker, not {}", members);
  require_same_settings(workers_, settings_in(exchange_->all_gather(
                                      RoundKind::kMakeCommunicator,
                                      to_blob(AgreedSettings{members, options.reproducible, true}))));
  NodeGroupOptions node = node_options(options, members);
  ++communicators_;
  if (std::ranges::max(nodes_, {}, &WorkerInfo::node).node == 0) return make_node_communicators(node);

  const auto lost = std::make_shared<LostConnection>();
  TcpGroupOptions tcp;
  tcp.workers = nodes_;
  tcp.rank = rank_;
  tcp.members = members;
  tcp.secret = fmt::format("{} {} {}", cluster_->links()->secret(), name_, communicators_);
  tcp.exchange = node.exchange;
  tcp.fault = node.fault;
  tcp.timeout = cluster_->timeout();
  tcp.lost = lost;
  std::vector<std::shared_ptr<TcpNetwork>> networks;
  try {
    networks = connect_members(tcp);
  } catch (const Error& error) {
    exchange_->fail(error);
    throw;
  }
  node.fault = [of_session = std::move(node.fault), lost] {
    const Error* fault = of_session();
    return fault != nullptr ? fault : lost->fault();
  };
  const auto transport = [&](int rank) {
    return std::make_unique<TcpTransport>(networks[static_cast<std::size_t>(rank - rank_ * members)]);
  };
  return make_network_communicators({std::move(node), transport});
}

NodeGroupOptions Members::node_options(const CommunicationOptions& options, int members) {
  NodeGroupOptions group;
  group.memory = memory_;
  group.workers = nodes_;
  group.rank = rank_;
  group.members = members;
  group.exchange = [exchange = exchange_](std::string_view blob) {
    return exchange->all_gather(RoundKind::kExchange, blob);
  };
  group.fault = [faults = cluster_->faults()] { return faults ? faults->fault() : nullptr; };
  group.observer = observer_;
  group.communication = options;
  return group;
}

}  // namespace

Session::Session(SessionOptions options)
    : everyone_(std::make_unique<Members>(make_cluster(std::move(options)))) {}

Session::~Session() = default;

std::span<const WorkerInfo> Session::workers() const { return everyone_->workers(); }

int Session::rank() const { return everyone_->rank(); }

std::vector<std::string> Session::exchange(std::string_view blob) { return everyone_->exchange(blob); }

std::unique_ptr<Communicator> Session::make_communicator(const CommunicationOptions& options) {
  return everyone_->make_communicator(options);
}

std::vector<std::unique_ptr<Communicator>> Session::make_communicators(const CommunicationOptions& options,
                                                                       int members) {
  return everyone_->make_communicators(options, members);
}

std::unique_ptr<Bootstrap> Session::split(int color, int key) { return everyone_->split(color, key); }

std::unique_ptr<Group> Session::make_group(std::span<const int> ranks, std::string_view name) {
  return everyone_->make_group(ranks, name);
}

const Error* Session::fault() const noexcept { return everyone_->fault(); }

}  // namespace cohort::rendezvous
