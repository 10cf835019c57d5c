#include <cohort/mpi/session.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/cluster/launcher_place.h>
#include <cohort/cluster/peer_watch.h>
#include <cohort/collective/network_communicator.h>
#include <cohort/collective/node_communicator.h>
#include <cohort/device/node_memory.h>

#include "calls.h"
#include "channels.h"
#include "meeting_guard.h"
#include "mpi_communicator.h"
#include "mpi_transport.h"
#include "process_end.h"
#include "runtime.h"
#include "terms.h"
#include "worker_census.h"

namespace cohort::mpi {
namespace {

/// MPI is a process's own, so a process has one Session at a time.
class Claim {
 public:
  Claim() {
    if (taken_.exchange(true)) {
      throw WrongContext(
          "this process has a Session already, or had one that ended with an error; keep one Session for the "
          "whole "
          "run and pass it on by reference");
    }
  }
  ~Claim() { taken_ = false; }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  static inline std::atomic<bool> taken_{false};
};

/// The settings; if one is wrong, the terminate handler is already there to say so in one line.
const Config& checked_settings() {
  ProcessEnd::instance().take_over();
  return config();
}

/// MPI itself: initialised here and then finalised here, or taken over as it is.
class Library {
 public:
  Library(int* argc, char*** argv) {
    if (mpi::finalized()) {
      throw WrongContext("MPI was finalised before the Session was made; MPI can be used once per process");
    }
    if (mpi::initialized()) {
      thread_level_ = mpi::thread_level();
      if (thread_level_ < MPI_THREAD_SERIALIZED && !is_main_thread()) {
        throw WrongContext("MPI was initialised for one thread; make the Session on that thread");
      }
      return;
    }
    owned_ = true;
    thread_level_ = init_thread(argc, argv, MPI_THREAD_MULTIPLE);
  }

  /// Without `finalize` before it, the job can only end with an error.
  ~Library() {
    if (owned_) ProcessEnd::instance().abandon(nullptr);
  }

  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] int thread_level() const { return thread_level_; }

  void finalize() {
    if (std::exchange(owned_, false)) mpi::finalize();
  }

 private:
  bool owned_ = false;
  int thread_level_ = MPI_THREAD_SINGLE;
};

std::vector<MemberInfo> to_members(std::span<const WorkerInfo> workers) {
  std::vector<MemberInfo> members;
  for (const WorkerInfo& worker : workers) members.push_back({worker.rank, worker.host});
  return members;
}

}  // namespace

class Session::Impl {
 public:
  Impl(int* argc, char*** argv);

  /// Leaves in good order. @throws Error when another worker is lost on the way.
  void close();

  [[nodiscard]] bool is_unwinding() const { return std::uncaught_exceptions() > exceptions_at_start_; }
  [[nodiscard]] const Error* fault() const { return watch_ ? watch_->fault() : nullptr; }
  void mute_watch() {
    if (watch_) watch_->mute();
  }
  void tell_failure(const std::string& text) {
    if (watch_) watch_->announce_failure(text);
  }

  [[nodiscard]] const std::vector<WorkerInfo>& workers() const { return workers_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] std::vector<std::string> exchange(std::string_view blob);
  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_communicators(
      const CommunicationOptions& options, int members);

 private:
  [[nodiscard]] std::vector<Terms> exchange_terms(const Terms& own);
  /// Whether the workers of each node can reach each other's memory. Collective.
  [[nodiscard]] bool nodes_share_memory();
  [[nodiscard]] bool on_one_node() const {
    return std::ranges::max(workers_, {}, &WorkerInfo::node).node == 0;
  }
  void require_threads_may_communicate(std::span<const Terms> by_worker) const;
  [[nodiscard]] NodeGroupOptions node_options(const CommunicationOptions& options, int members);
  void watch_others();

  // In the order of the start; undone in reverse when the constructor fails.
  Claim claim_;
  const Config& settings_ = checked_settings();
  const std::optional<LauncherPlace> place_ = launcher_place();  // before MPI sets variables of its own
  std::optional<MeetingGuard> start_guard_{std::in_place, settings_.collective_timeout(),
                                           "before the end of its Session's constructor"};
  Library library_;
  const int exceptions_at_start_ = std::uncaught_exceptions();
  std::shared_ptr<Runtime> runtime_;
  Comm world_;
  std::vector<WorkerInfo> workers_;
  int rank_ = 0;
  std::unique_ptr<MpiCommunicator> everyone_;
  std::unique_ptr<PeerWatch> watch_;
  std::shared_ptr<const NodeMemory> node_memory_;
  bool own_algorithms_ = false;  ///< rather than MPI's
};

Session::Impl::Impl(int* argc, char*** argv)
    : library_(argc, argv),
      runtime_(std::make_shared<Runtime>(library_.thread_level())),
      world_(Comm::duplicate(MPI_COMM_WORLD)),
      workers_(take_census(world_.get(), settings_, place_)),
      rank_(comm_rank(world_.get())) {
  log::set_origin(fmt::format("worker {}", rank_));
  everyone_ = std::make_unique<MpiCommunicator>(runtime_, world_.get(), rank_, to_members(workers_),
                                                CommunicationOptions{});
  if (workers_.size() > 1) watch_others();
  ProcessEnd::instance().set_worker(workers_[static_cast<std::size_t>(rank_)], watch_.get());
  node_memory_ =
      NodeMemory::connect(rank_, workers_, [this](std::string_view blob) { return exchange(blob); });
  own_algorithms_ = nodes_share_memory() && settings_.communicator() == "auto";
  start_guard_.reset();
  log::debug("session of {} workers on {} nodes, MPI thread level {}", workers_.size(),
             workers_.back().node + 1, library_.thread_level());
}

void Session::Impl::watch_others() {
  PeerWatchOptions options;
  options.rank = rank_;
  options.workers = workers_;
  options.exchange = [this](std::string_view blob) { return exchange(blob); };
  options.grace = settings_.fault_grace();
  options.beat = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.heartbeat());
  options.silence = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.silence());
  watch_ = std::make_unique<PeerWatch>(std::move(options));
  runtime_->set_faults(watch_->record());
}

std::vector<std::string> Session::Impl::exchange(std::string_view blob) {
  const auto workers = static_cast<std::int64_t>(workers_.size());
  const Tensor sizes = Tensor::uninitialized({workers}, DType::kUInt64);
  everyone_->all_gather(Tensor::from({static_cast<std::uint64_t>(blob.size())}), sizes);

  const std::span<const std::uint64_t> counts = sizes.span<std::uint64_t>();
  const auto total =
      static_cast<std::int64_t>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  const Tensor own = Tensor::uninitialized({static_cast<std::int64_t>(blob.size())}, DType::kUInt8);
  std::copy(blob.begin(), blob.end(), reinterpret_cast<char*>(own.data()));
  const Tensor all = Tensor::uninitialized({total}, DType::kUInt8);
  everyone_->all_gather_uneven(own, all, counts);

  std::vector<std::string> blobs;
  const char* next = reinterpret_cast<const char*>(all.data());
  for (const std::uint64_t count : counts) {
    blobs.emplace_back(next, count);
    next += count;
  }
  return blobs;
}

std::vector<std::unique_ptr<Communicator>> Session::Impl::make_communicators(
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
    const auto channels = std::make_shared<Channels>(runtime_, world_.get(), members);
    const auto transport = [&channels](int rank) { return std::make_unique<MpiTransport>(channels, rank); };
    return make_network_communicators({node_options(options, members), transport});
  }
  if (members > 1) {
    throw Unimplemented(
        "{} members on each worker: MPI's own collectives, {}, know one member per worker. Start one worker "
        "per "
        "member (mpirun -n {})",
        members,
        settings_.communicator() == "auto"
            ? "which have to do as workers of a node cannot map each other's memory"
            : "which COHORT_COMMUNICATOR asks for",
        workers_.size() * static_cast<std::size_t>(members));
  }
  std::vector<std::unique_ptr<Communicator>> seats;
  seats.push_back(
      std::make_unique<MpiCommunicator>(runtime_, world_.get(), rank_, to_members(workers_), options));
  return seats;
}

/// Also what finds out a worker that ends too early: it makes another call, the barrier of `close`.
std::vector<Terms> Session::Impl::exchange_terms(const Terms& own) {
  static_assert(sizeof(Terms) == 3 * sizeof(std::int64_t));
  const Tensor all = Tensor::uninitialized({static_cast<std::int64_t>(workers_.size()), 3}, DType::kInt64);
  const Tensor sent = Tensor::uninitialized({3}, DType::kInt64);
  std::memcpy(sent.data(), &own, sizeof own);
  everyone_->all_gather(sent, all);
  std::vector<Terms> terms(workers_.size());
  std::memcpy(terms.data(), all.data(), terms.size() * sizeof(Terms));
  return terms;
}

void Session::Impl::require_threads_may_communicate(std::span<const Terms> by_worker) const {
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

bool Session::Impl::nodes_share_memory() {
  const int node = workers_[static_cast<std::size_t>(rank_)].node;
  const bool alone = std::ranges::count(workers_, node, &WorkerInfo::node) == 1;
  const std::vector<std::string> answers = exchange(alone || node_memory_->shared() ? "yes" : "no");
  return std::ranges::count(answers, "yes") == static_cast<std::ptrdiff_t>(answers.size());
}

NodeGroupOptions Session::Impl::node_options(const CommunicationOptions& options, int members) {
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

void Session::Impl::close() {
  everyone_->wait_for_all();
  everyone_.reset();
  // Whoever dies from here on is still noticed: the watch goes on until all have finalised.
  {
    const Gate::Pass pass = runtime_->gate().enter();
    world_ = Comm();
    library_.finalize();
  }
  if (watch_ && !watch_->leave()) throw_error(fault()->code(), fault()->what(), fault()->origin());
  ProcessEnd::instance().give_back();
}

Session::Session(int& argc, char**& argv) : impl_(std::make_unique<Impl>(&argc, &argv)) {}

Session::Session() : impl_(std::make_unique<Impl>(nullptr, nullptr)) {}

Session::~Session() {
  std::string reason = "an exception ended its Session";
  if (!impl_->is_unwinding()) {
    try {
      impl_->close();
      return;
    } catch (const std::exception& error) {
      reason = impl_->fault() != nullptr ? impl_->fault()->what() : error.what();
      impl_->mute_watch();
      write_line(fmt::format("cohort: {} ends because {}", describe(self()), reason));
    }
  }
  impl_->tell_failure(reason);
  ProcessEnd::instance().abandon(std::shared_ptr<void>(std::move(impl_)));
}

std::span<const WorkerInfo> Session::workers() const { return impl_->workers(); }

int Session::rank() const { return impl_->rank(); }

std::vector<std::string> Session::exchange(std::string_view blob) { return impl_->exchange(blob); }

std::unique_ptr<Communicator> Session::make_communicator(const CommunicationOptions& options) {
  return std::move(impl_->make_communicators(options, 1).front());
}

std::vector<std::unique_ptr<Communicator>> Session::make_communicators(const CommunicationOptions& options,
                                                                       int members) {
  return impl_->make_communicators(options, members);
}

std::vector<TuningFigure> Session::tuning() {
  // Large enough for every figure to be needed, on the node and between nodes.
  const Tensor tensor = Tensor::zeros({1 << 18}, DType::kFloat32);
  const std::unique_ptr<Communicator> communicator = make_communicator({});
  communicator->all_reduce(tensor, ReduceOp::kSum);
  return communicator->tuning();
}

}  // namespace cohort::mpi
