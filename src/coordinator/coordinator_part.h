// The coordinator's part in its job: it gives the calls that were scheduled to workers, first come first
// served, takes their results, and sees to it that the calls of a lost worker are run elsewhere, each with
// its effects once.
//
// Any thread may call the public functions. A thread of its own polls while no other one waits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <cohort/coordinator/cluster_coordinator.h>

#include "server/client/server_variables.h"
#include "worker_link.h"

namespace cohort::coordinator {

class CoordinatorPart final : private server::TaskPart {
 public:
  CoordinatorPart(std::shared_ptr<server::ServerVariables> variables,
                  const ClusterCoordinatorOptions& options);
  /// The job is over: workers and servers end.
  ~CoordinatorPart() override;
  CoordinatorPart(const CoordinatorPart&) = delete;
  CoordinatorPart& operator=(const CoordinatorPart&) = delete;

  /// Waits while the queue is full. @throws the error of an earlier call, once.
  std::shared_ptr<RemoteState> schedule(FunctionNumber function, EncodedArguments arguments);

  /// Has every worker make an element.
  std::shared_ptr<const PerWorkerState> make_per_worker(FunctionNumber function, EncodedArguments arguments);

  /// Waits until nothing is scheduled. @throws the error of a call, once.
  void join();
  [[nodiscard]] bool done();

 private:
  static constexpr std::string_view kSameBinary = "start all tasks with the same one";

  struct PerWorkerMaker {
    FunctionNumber function;
    EncodedArguments arguments;
  };
  /// A worker whose calls are not settled yet.
  struct LostWorker {
    std::string name;
    std::uint64_t incarnation;
    std::deque<Call> calls;
  };

  [[nodiscard]] server::Connections& connections() const noexcept {
    return variables_->client().connections();
  }

  void on_connected(remote::Peer& peer) override;
  void on_message(remote::Peer& peer, const remote::Message& message) override;
  void on_lost(remote::Peer& peer, const Error& error) override;

  void take(remote::Peer& peer, const remote::Message& message);

  // With mutex_ held, by the thread that uses the endpoint:
  void join_worker(remote::Peer& peer, const remote::Message& message);
  void end_call(WorkerLink& worker, const remote::Message& message);
  void take_back(std::deque<Call> calls);
  void give_calls();
  void give(WorkerLink& worker, Call call);
  void recall_what_waits();
  static void send_maker(remote::Peer& worker, std::uint64_t number, const PerWorkerMaker& maker);
  void free_released();
  void fail(const Error& error);
  void update_counts();

  // By the thread of its own:
  void run(const std::stop_token& stop);
  void settle_lost(LostWorker lost);
  void look_around();
  void notice_missing_workers();
  void fail_queued(const Error& error);
  [[nodiscard]] std::ptrdiff_t workers_of_job() const;
  [[nodiscard]] std::string names_of_refused() const;
  void throw_failure();

  std::shared_ptr<server::ServerVariables> variables_;
  std::shared_ptr<server::Connections> shared_connections_;
  ClusterCoordinatorOptions options_;

  std::set<remote::Peer*> present_;  ///< workers, also those that have not joined yet

  std::mutex mutex_;
  std::deque<Call> queue_;  ///< in the order of scheduling
  std::uint64_t next_place_ = 0;
  std::map<const remote::Peer*, WorkerLink> workers_;
  std::map<int, std::string> refused_;  ///< by number: names of workers that came last with another binary
  std::vector<LostWorker> lost_;
  std::size_t settling_ = 0;  ///< calls of lost workers that are being settled
  std::uint64_t next_per_worker_ = 0;
  std::map<std::uint64_t, PerWorkerMaker> per_worker_;  ///< by number: those with handles
  std::shared_ptr<ReleasedPerWorkers> released_ = std::make_shared<ReleasedPerWorkers>();
  std::unique_ptr<Error> failure_;  ///< of the first call that failed, until it is thrown

  // What waits look at without the mutex.
  std::atomic<std::size_t> queued_{0};
  std::atomic<std::size_t> unsettled_{0};  ///< calls that are queued or in flight
  std::atomic<bool> failed_{false};
  std::atomic<bool> has_room_{false};        ///< whether a worker could take a call now
  std::atomic<bool> expects_answer_{false};  ///< of a worker that has no call, and can then take one
  std::atomic<bool> has_lost_{false};
  std::chrono::steady_clock::time_point next_notice_;  ///< of the thread of its own
  std::chrono::steady_clock::time_point
      worker_seen_;  ///< likewise: when there was one last, or nothing to do
  bool has_warned_ = false;
  std::jthread thread_;
};

}  // namespace cohort::coordinator
