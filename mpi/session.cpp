#include <cohort/mpi/session.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/collective/communicator.h>

#include "base/explanation.h"
#include "calls.h"
#include "cluster/launcher.h"
#include "cluster/peer_watch.h"
#include "environment.h"
#include "observation/job_observer.h"
#include "process_end.h"
#include "session_start.h"
#include "worker_group.h"

namespace cohort::mpi {
namespace {

/// How long the first worker may take to end the job with the error that all have; it takes a fraction of a
/// second, unless its program catches the error and goes on.
constexpr auto kTimeToSayWhy = std::chrono::seconds(10);

/// MPI is a process's own, so a process has one Session at a time.
class Claim {
 public:
  Claim() {
    if (taken_.exchange(true)) {
      throw WrongContext(
          "this process has a Session already, or had one that ended with an error; keep one Session for the "
          "whole run and pass it on by reference");
    }
  }
  ~Claim() { taken_ = false; }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  static inline std::atomic<bool> taken_{false};
};

/// What the launcher's variables say; if one is wrong, the terminate handler is already there to say so in
/// one line.
std::optional<LauncherPlace> checked_place() {
  ProcessEnd::instance().take_over();
  return launcher_place();
}

/// What is wrong with the settings of one of several workers is told to all of them, so that it is said once.
StartSettings checked_settings(const std::optional<LauncherPlace>& place) {
  try {
    return {config()};
  } catch (const InvalidArgument& error) {
    if (!place || place->size == 1) throw;
    static const Config defaults({});
    return {defaults, error.what()};
  }
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
    logging::debug("MPI starts");
    thread_level_ = init_thread(argc, argv, MPI_THREAD_MULTIPLE);
    logging::debug("MPI has started");
  }

  /// Without `finalize` before it, the job can only end with an error.
  ~Library() {
    if (owned_) ProcessEnd::instance().abandon(nullptr);
  }

  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] int thread_level() const { return thread_level_; }

  /// True if MPI cannot be used any more.
  bool finalize() {
    if (!std::exchange(owned_, false)) return false;
    mpi::finalize();
    return true;
  }

 private:
  bool owned_ = false;
  int thread_level_ = MPI_THREAD_SINGLE;
};

/// Undoes ProcessEnd's `set_worker`, also when the Session's constructor fails.
struct RegisteredWorker {
  RegisteredWorker() = default;
  ~RegisteredWorker() { ProcessEnd::instance().forget_worker(); }
  RegisteredWorker(const RegisteredWorker&) = delete;
  RegisteredWorker& operator=(const RegisteredWorker&) = delete;
};

}  // namespace

class Session::Impl {
 public:
  Impl(int* argc, char*** argv);
  ~Impl() {
    // Communicators that outlive this session keep the observer, which must not need the watch any more.
    if (observer_) observer_->stop();
    if (observer_) observer_->fall_silent();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

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

  [[nodiscard]] WorkerGroup& everyone() { return *everyone_; }
  /// Of a forked child, which is no worker.
  [[nodiscard]] bool is_copy() const noexcept { return process_ != ::getpid(); }

 private:
  /// What `check` returns, which all workers do together; an error of it is the same on all of them.
  template <class Check>
  auto said_by_first(const Check& check) {
    try {
      return check();
    } catch (const InvalidArgument&) {
      start_watchdog_.reset();  // all have come together
      // The job ends when one of them does. The first says why.
      if (comm_rank(MPI_COMM_WORLD) != 0) std::this_thread::sleep_for(kTimeToSayWhy);
      throw;
    }
  }
  void watch_others();
  void observe();

  const pid_t process_ = ::getpid();
  // In the order of the start; undone in reverse when the constructor fails.
  Claim claim_;
  const std::optional<LauncherPlace> place_ = checked_place();  // before MPI sets variables of its own
  const StartSettings start_settings_ = checked_settings(place_);
  const Config& settings_ = start_settings_.values;
  std::optional<HangWatchdog> start_watchdog_{std::in_place, settings_.collective_timeout(),
                                              "before the end of its Session's constructor"};
  Library library_;
  const int exceptions_at_start_ = std::uncaught_exceptions();
  std::shared_ptr<MpiEnvironment> environment_;
  std::optional<WorkerGroup> everyone_;
  std::unique_ptr<PeerWatch> watch_;
  std::shared_ptr<JobObserver> observer_;  ///< may be null
  const RegisteredWorker registered_;
};

Session::Impl::Impl(int* argc, char*** argv)
    : library_(argc, argv), environment_(std::make_shared<MpiEnvironment>(library_.thread_level())) {
  if (!place_ && comm_size(MPI_COMM_WORLD) == 1) ProcessEnd::instance().set_alone();
  Comm world = Comm::duplicate(MPI_COMM_WORLD);
  std::vector<WorkerInfo> workers =
      said_by_first([&] { return discover_workers(world.get(), start_settings_, place_); });
  logging::set_origin(fmt::format("worker {}", comm_rank(world.get())));
  make_first_contacts(world.get(), workers);
  everyone_.emplace(environment_, std::move(world), std::move(workers));
  if (everyone_->size() > 1) watch_others();
  ProcessEnd::instance().set_worker(everyone_->self(), watch_.get());
  if (everyone_->size() > 1) bind_cores(*everyone_, settings_.bind_cores());
  everyone_->connect_memory();
  observe();
  start_watchdog_.reset();
  const int nodes = everyone_->workers().back().node + 1;
  logging::debug("session of {} worker{} on {} node{}, MPI thread level {}", everyone_->size(),
                 everyone_->size() == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s", library_.thread_level());
}

void Session::Impl::watch_others() {
  PeerWatchOptions options;
  options.rank = everyone_->rank();
  options.workers.assign(everyone_->workers().begin(), everyone_->workers().end());
  options.exchange = [this](std::string_view blob) { return everyone_->exchange(blob); };
  options.grace = settings_.fault_grace();
  options.beat = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.heartbeat());
  options.silence = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.silence());
  watch_ = std::make_unique<PeerWatch>(std::move(options));
  environment_->set_faults(watch_->record());
}

void Session::Impl::observe() {
  observer_ = JobObserver::of_job(everyone_->workers_by_memory(), everyone_->rank(), watch_.get());
  if (observer_) everyone_->set_observer(observer_);
}

void Session::Impl::close() {
  if (observer_) observer_->stop();
  everyone_->close();
  // A worker that dies from here on is still noticed: the watch goes on until all have finalised.
  {
    const MpiLock::Guard guard = environment_->lock().acquire();
    if (library_.finalize()) environment_->lock().close();
  }
  if (watch_ && !watch_->leave()) throw_error(*fault());
  if (observer_) observer_->conclude();
  ProcessEnd::instance().give_back();
}

Session::Session(int& argc, char**& argv) : impl_(std::make_unique<Impl>(&argc, &argv)) {}

Session::Session() : impl_(std::make_unique<Impl>(nullptr, nullptr)) {}

Session::~Session() {
  if (impl_->is_copy()) {
    // MPI, the watch's thread and what the workers do together are the parent's.
    [[maybe_unused]] static const Impl* of_parent = nullptr;  // reachable: no leak of the child's
    of_parent = impl_.release();
    return;
  }
  std::string reason = "an exception ended its Session";
  if (!impl_->is_unwinding()) {
    try {
      impl_->close();
      return;
    } catch (const std::exception& error) {
      const std::exception& cause = impl_->fault() != nullptr ? *impl_->fault() : error;
      reason = cause.what();
      impl_->mute_watch();
      write_line(
          fmt::format("cohort: {} ends because {}{}", describe(self()), reason, where_explained(cause)));
    }
  }
  impl_->tell_failure(reason);
  ProcessEnd::instance().abandon(std::shared_ptr<void>(std::move(impl_)));
}

std::span<const WorkerInfo> Session::workers() const { return impl_->everyone().workers(); }

int Session::rank() const { return impl_->everyone().rank(); }

std::vector<std::string> Session::exchange(std::string_view blob) { return impl_->everyone().exchange(blob); }

std::unique_ptr<Communicator> Session::make_communicator(const CommunicationOptions& options) {
  return impl_->everyone().make_communicator(options);
}

std::vector<std::unique_ptr<Communicator>> Session::make_communicators(const CommunicationOptions& options,
                                                                       int members) {
  return impl_->everyone().make_communicators(options, members);
}

std::unique_ptr<Bootstrap> Session::split(int color, int key) { return impl_->everyone().split(color, key); }

std::vector<TuningFigure> Session::tuning() {
  // Large enough for every figure to be needed, on the node and between nodes.
  const Tensor tensor = Tensor::zeros({1 << 18}, DType::kFloat32);
  const std::unique_ptr<Communicator> communicator = make_communicator({});
  communicator->all_reduce(tensor, ReduceOp::kSum);
  return communicator->tuning();
}

}  // namespace cohort::mpi
