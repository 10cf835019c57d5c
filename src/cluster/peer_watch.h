// A PeerWatch notices that another worker died, failed or cannot be reached any more,
// which MPI does not report. Every worker makes one at start; one thread per process,
// asleep in poll(), keeps links to the others: within a node over local sockets to the
// node's lowest rank, between nodes over TCP from those to the chief.
//
// The first fault reaches every survivor within milliseconds and stays: `fault()` says
// who and why, for waits to give up. A process that has not ended a grace period later is
// ended with a line on standard error. The owner destroys it; any thread may call.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/cluster/worker.h>

#include "fault_record.h"

namespace cohort {

namespace watch {
class Loop;
}

struct PeerWatchOptions {
  int rank = 0;
  std::vector<WorkerInfo> workers;  ///< by rank

  /// Every worker's blob, by rank; called a few times, by every worker alike.
  std::function<std::vector<std::string>(std::string_view)> exchange;

  std::chrono::duration<double> grace{3};    ///< from a fault to the end of this process
  std::chrono::milliseconds beat{1000};      ///< between signs of life, on every link
  std::chrono::milliseconds silence{5000};   ///< without a sign of life: out of reach; 0: never
  std::chrono::milliseconds connect{5000};   ///< for making one link
  std::chrono::milliseconds interrupt{500};  ///< after another worker's SIGTERM: for our own to arrive

  /// SIGTERM and SIGINT, where nobody handles them: the other workers are told, so that they do
  /// not take it for a crash, and a known fault is printed before the signal ends this process.
  bool handle_signals = true;

  /// Ends this process after the line has been written; tests put their own here.
  std::function<void(const std::string& line)> end_process;
};

class PeerWatch {
 public:
  /// Collective. A link that cannot be made costs a warning, never a failure.
  explicit PeerWatch(PeerWatchOptions options);

  /// Without `leave` before it, the others take this worker for dead.
  ~PeerWatch();

  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  /// The first fault among the other workers, or null; stays valid. Cheap enough for polling.
  [[nodiscard]] const Error* fault() const noexcept;

  /// Where the fault is found also when this watch is gone.
  [[nodiscard]] std::shared_ptr<const FaultRecord> record() const noexcept;

  /// Tells the others why this worker ends; this process is ended a grace period later.
  void announce_failure(std::string_view text) noexcept;

  /// This process has told its user why it ends, so the watch need not, if a signal comes.
  void mute() noexcept;

  /// The end of this worker is no fault from here on. Returns once every worker has left, or
  /// false at a fault. Call it when nothing is left that could wait for another worker.
  bool leave();

  /// Workers that have no link towards the chief, because none could be made.
  [[nodiscard]] const std::vector<int>& unwatched() const noexcept { return unwatched_; }

 private:
  std::unique_ptr<watch::Loop> loop_;
  std::vector<int> unwatched_;
};

}  // namespace cohort
