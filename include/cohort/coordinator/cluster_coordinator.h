// A ClusterCoordinator has functions run by the workers of a ParameterServerStrategy: the chief schedules
// them, any worker that is free runs them, and their results come back as RemoteValues.
//
//     float train_step(const Model& model, WorkerBatches& batches) { ... }
//
//     ClusterCoordinator coordinator(strategy);
//     const auto batches = coordinator.create_per_worker<make_batches>(64);
//     for (int i = 0; i < 1000; ++i) losses.push_back(coordinator.schedule<train_step>(model, batches));
//     coordinator.join();
//
// Functions have no captures; their arguments are sent (see cohort/server/detail/codec.h for what can be),
// and PerWorker values arrive as the element of the worker that runs the function. What a function writes to
// variables takes effect once, when it has ended, also if its worker is lost before or after that; it reads
// its own writes.
//
// Calls go to free workers, first come first served. A few are sent ahead while calls are short; those that
// then wait behind a long one go to whoever is free next. So no call waits for one that was scheduled after
// it. They end in any order.
//
// The first function that fails ends the others: what was not begun is cancelled, what runs is interrupted at
// its next read of a variable. Its error is thrown once, by `schedule`, `join` or `done`, whichever comes
// next; then the coordinator can be used again. Any thread may call.
//
// The job is over with the last handle of the coordinator: workers and servers end, and no other coordinator
// can be made. Read what is to be kept before that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <cohort/coordinator/detail/function.h>
#include <cohort/coordinator/per_worker.h>
#include <cohort/coordinator/remote_value.h>
#include <cohort/server/parameter_server_strategy.h>

namespace cohort {

namespace coordinator {
class CoordinatorPart;
}

struct ClusterCoordinatorOptions {
  std::size_t queue_limit = std::size_t{1} << 18;  ///< of calls that wait for a worker; `schedule` waits then
  double worker_timeout_seconds = 600;  ///< how long calls wait while there is no worker at all; 0: for ever
};

class ClusterCoordinator {
 public:
  /// A second coordinator of a strategy is another handle of the first.
  /// @throws WrongContext on another task than the chief, and when the last handle of a coordinator has gone.
  explicit ClusterCoordinator(const ParameterServerStrategy& strategy,
                              const ClusterCoordinatorOptions& options = {});

  /// Has a worker call `kFunction`, a function or a lambda without captures. Returns at once, unless the
  /// queue is full.
  /// @throws the error of a function that failed, once; InvalidArgument for a variable that is not kept by a
  /// parameter server.
  template <auto kFunction, class... Args>
  auto schedule(const Args&... args) const;

  /// Has every worker call `kFunction`, which may take an InputContext first, and keep what it returns: the
  /// worker's element, for as long as there is a handle of the PerWorker or a call that was given it.
  template <auto kFunction, class... Args>
  [[nodiscard]] auto create_per_worker(const Args&... args) const;

  /// Waits until all functions have ended. @throws the error of one that failed, once.
  void join() const;

  /// Whether all functions have ended. @throws as `join`.
  [[nodiscard]] bool done() const;

  /// The value of a RemoteValue; of a vector, map or tuple, the same with the values of all RemoteValues in
  /// it. Whatever else is in it stays as it is.
  /// @throws as RemoteValue::get, for the first one that fails.
  template <class T>
  [[nodiscard]] auto fetch(const T& structure) const {
    return coordinator::fetch_all(structure);
  }

  [[nodiscard]] const ParameterServerStrategy& strategy() const& noexcept { return strategy_; }
  [[nodiscard]] ParameterServerStrategy strategy() && noexcept { return std::move(strategy_); }

 private:
  [[nodiscard]] std::shared_ptr<const coordinator::RemoteState> schedule_call(
      coordinator::FunctionNumber function, coordinator::EncodedArguments arguments) const;
  [[nodiscard]] std::shared_ptr<const coordinator::PerWorkerState> make_per_worker(
      coordinator::FunctionNumber function, coordinator::EncodedArguments arguments) const;

  ParameterServerStrategy strategy_;
  std::shared_ptr<coordinator::CoordinatorPart> part_;
};

// ---- implementation of the templates ----

template <auto kFunction, class... Args>
auto ClusterCoordinator::schedule(const Args&... args) const {
  using Registered = coordinator::RegisteredFunction<kFunction>;
  using Result = std::remove_cvref_t<typename Registered::Result>;
  constexpr bool kReturnsValue = std::is_void_v<Result> || server::kSendableAnywhere<Result>;
  constexpr bool kRightNumber = sizeof...(Args) == Registered::kArity;
  constexpr bool kHasRemote = (detail::kIsInstance<Args, RemoteValue> || ...);
  static_assert(kRightNumber, "schedule() takes as many arguments as the function, without its InputContext");
  static_assert(!kHasRemote, "a RemoteValue is no argument of another function: fetch its value first");
  static_assert(kReturnsValue,
                "what this function returns cannot be sent: return numbers, text, tensors or structures of "
                "them, and the value of a variable instead of the variable");
  if constexpr (kRightNumber && !kHasRemote && kReturnsValue) {
    return RemoteValue<Result>(
        schedule_call(Registered::number(), coordinator::encode_arguments<kFunction>(args...)));
  }
}

template <auto kFunction, class... Args>
auto ClusterCoordinator::create_per_worker(const Args&... args) const {
  using Registered = coordinator::RegisteredFunction<kFunction>;
  using Result = std::remove_cvref_t<typename Registered::Result>;
  constexpr bool kRightNumber = sizeof...(Args) == Registered::kArity;
  static_assert(kRightNumber,
                "create_per_worker() takes as many arguments as the function, without its InputContext");
  if constexpr (kRightNumber) {
    return PerWorker<Result>(
        make_per_worker(Registered::number(), coordinator::encode_arguments<kFunction>(args...)));
  }
}

}  // namespace cohort
