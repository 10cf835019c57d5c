// A PeerWatch notices that another worker died, failed or cannot be reached any more,
// which MPI does not report. Every worker makes one at start; one thread per process,
// asleep in poll(), keeps links to the others: within a node over local sockets to the
// node's lowest rank, between nodes over TCP from those to the chief.
//
// The first fault reaches every survivor within milliseconds and stays: `fault()` says which worker and why,
// so that waits can give up. A process that has not ended a grace period later is ended with a line on
// standard error, unless its program wants to decide for itself. The owner destroys it; any thread may call.
#pragma once

#include <sysexits.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>

namespace cohort {

/// The first fault that a PeerWatch has noticed. Its readers co-own it, so that they may read it even after
/// the watch has ended. Any thread may read.
class FaultRecord {
 public:
  FaultRecord() = default;
  FaultRecord(const FaultRecord&) = delete;
  FaultRecord& operator=(const FaultRecord&) = delete;

  /// Null while there is none; stays valid. Cheap enough for polling.
  [[nodiscard]] const Error* fault() const noexcept { return published_.load(std::memory_order_acquire); }

  /// The same, after a wait of at most `limit` for one.
  [[nodiscard]] const Error* wait_for_fault(std::chrono::milliseconds limit) const {
    constexpr auto kNap = std::chrono::milliseconds(1);
    for (const Deadline deadline = Deadline::after(limit); fault() == nullptr && !deadline.expired();)
      std::this_thread::sleep_for(kNap);
    return fault();
  }

  /// Called once, by the watch.
  void publish(Error fault) {
    fault_.emplace(std::move(fault));
    published_.store(&*fault_, std::memory_order_release);
  }

 private:
  std::optional<Error> fault_;
  std::atomic<const Error*> published_{nullptr};
};

/// The status of a process that ends because of `fault`, or by a failure of its own where that is null. The
/// launcher may hear of this end before it hears of the lost worker's, and the job's status is then this one:
/// `cohort-run --restarts` tells by it that a worker is lost.
[[nodiscard]] inline int exit_status_after(const Error* fault) noexcept {
  return fault != nullptr && fault->code() == ErrorCode::kUnavailable ? EX_TEMPFAIL : 1;
}

namespace watch {
class Loop;
}

struct PeerWatchOptions {
  int rank = 0;
  std::vector<WorkerInfo> workers = {};  ///< by rank

  /// Returns every worker's blob, by rank; called a few times, collectively.
  std::function<std::vector<std::string>(std::string_view)> exchange = {};

  /// From a fault to the end of this process; nothing: it is never ended.
  std::optional<std::chrono::duration<double>> grace{3};
  std::chrono::milliseconds beat{1000};      ///< between heartbeats, on every link
  std::chrono::milliseconds silence{5000};   ///< without a heartbeat: out of reach; 0: never
  std::chrono::milliseconds connect{5000};   ///< for making one link
  std::chrono::milliseconds interrupt{500};  ///< after another worker's SIGTERM: for this one's to arrive

  /// Handle SIGTERM and SIGINT if the program does not: the other workers are told, so that they do not take
  /// it for a crash, and a known fault is printed before the signal ends this process.
  bool handle_signals = true;

  /// Ends this process after writing the line; tests replace it.
  std::function<void(const std::string& line)> end_process = {};
};

class PeerWatch {
 public:
  /// Collective. A link that cannot be made costs a warning, never a failure.
  explicit PeerWatch(PeerWatchOptions options);

  /// Call `leave` first; otherwise the others take this worker for dead.
  ~PeerWatch();

  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// The first fault among the other workers, or null; stays valid. Cheap enough for polling.
  [[nodiscard]] const Error* fault() const noexcept;

  /// The record of the fault, which may outlive this watch.
  [[nodiscard]] std::shared_ptr<const FaultRecord> record() const noexcept;

  /// Tells the others why this worker ends; this process is ended a grace period later.
  void announce_failure(std::string_view text) noexcept;

  /// Says that this process has told its user why it ends, so that the watch need not when a signal comes.
  void mute() noexcept;

  /// Tells another worker, or all others, something of at most kLongestNote bytes. It may be lost, as with a
  /// worker that ends.
  void tell(int worker, std::string note);
  void tell_all(std::string note);
  static constexpr std::size_t kLongestNote = 4096;

  /// `hear` gets, on the watch's thread, what the others tell this worker from now on.
  void hear_notes(std::function<void(std::string_view note)> hear);

  /// From here on, the end of this worker is no fault. Returns true once every worker has left, false at a
  /// fault. Call it when nothing waits for another worker any more.
  bool leave();

  /// The same, without waiting for those whose ends this process need not tell others: for programs whose
  /// workers end one by one. Those that this process links to the chief are waited for until `limit`, and
  /// then are no longer watched. Returns true once they have left.
  bool leave_within(std::chrono::milliseconds limit);

  /// Workers that have no link towards the chief, because none could be made.
  [[nodiscard]] const std::vector<int>& unwatched() const noexcept { return unwatched_; }

 private:
  std::unique_ptr<watch::Loop> loop_;
  std::vector<int> unwatched_;
};

}  // namespace cohort
