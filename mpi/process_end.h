// How a process ends that cannot leave its Session in good order: because an exception leaves `main`, or
// unwinds through the Session, because another worker is lost, or because the others do not come while MPI
// blocks. MPI must not be finalised then, for that would wait for workers that never come; the whole job ends
// by MPI_Abort, and this process by a timer if even that hangs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cluster/peer_watch.h"

namespace cohort::mpi {

/// The terminate handler and the exit hook are a process's own, so there is one object. A forked child is no
/// worker: its end is its own.
class ProcessEnd {
 public:
  [[nodiscard]] static ProcessEnd& instance();

  /// From here on an exception that leaves `main` ends in one line, and ends the job.
  void take_over();
  /// No launcher and no other process has to hear of the end, so MPI_Abort, which says much, is not called.
  void set_alone();
  /// This process is that worker; `watch` may be null.
  void set_worker(const WorkerInfo& worker, PeerWatch* watch);
  /// There is no Session any more; its watch is about to go.
  void forget_worker();
  /// The Session was left in good order: everything is as before.
  void give_back();

  /// After all exit hooks and destructors of statics: a Session that is still there is one that `exit` has
  /// passed by.
  static void on_unload();

  /// The job ends with an error when this process exits. `kept` lives until then; it may be null.
  void abandon(std::shared_ptr<void> kept);

 private:
  ProcessEnd() = default;
  [[noreturn]] static void on_terminate();
  static void on_exit();
  [[noreturn]] void fail(const std::string& text);
  [[noreturn]] static void end_job();

  [[nodiscard]] bool is_copy() const noexcept;

  std::mutex mutex_;
  pid_t process_ = 0;  ///< that took over; a forked child has a copy of this object
  std::terminate_handler before_ = nullptr;
  bool hooked_ = false;
  std::string name_;
  PeerWatch* watch_ = nullptr;
  bool abandoned_ = false;
  bool alone_ = false;
  std::shared_ptr<void> kept_;
};

/// Writes one line to standard error, in one piece.
void write_line(const std::string& line);

/// A limit for calls that block inside MPI until all workers have come: at the start of a Session, before the
/// workers watch each other, and where MPI makes a communicator. No error gets out of there, so the watchdog
/// ends the process, with a line like that of a deadline.
class HangWatchdog {
 public:
  /// No limit when zero. `place` completes "One of them has died, failed or hangs ...".
  HangWatchdog(std::chrono::duration<double> limit, const char* place);

 private:
  std::jthread thread_;
};

}  // namespace cohort::mpi
