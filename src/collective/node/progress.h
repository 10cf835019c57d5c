// What moves on in communicators while no thread waits in them: the progress thread drives the calls that
// were started (Progress), and a member that waits in one of its communicators answers for all of them
// (OwnCommunicators).
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cohort/base/deadline.h>

namespace cohort::node {

class NodeCommunicatorImpl;

/// The progress thread of this process: it drives the calls that were started and that no thread waits for.
/// It is started with the first asynchronous call, sleeps when nothing is in flight, and ends with the
/// process. Without it, before its start and after its end, or where the system has no thread left for it,
/// calls are driven by the threads that wait for them.
class Progress {
 public:
  [[nodiscard]] static Progress& of_this_process();

  /// Drives `impl` until nothing of it is in flight, and keeps it alive meanwhile.
  void attend(std::shared_ptr<NodeCommunicatorImpl> impl);

  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  Progress();
  ~Progress() = default;
  [[nodiscard]] bool has_thread() const noexcept { return thread_.joinable(); }
  void end();
  void serve();
  void take_arrivals(std::vector<std::shared_ptr<NodeCommunicatorImpl>>& members);
  /// True when something moved.
  static bool advance(std::vector<std::shared_ptr<NodeCommunicatorImpl>>& members);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<NodeCommunicatorImpl>> arrivals_;
  bool ending_ = false;
  const std::int64_t process_;
  std::jthread thread_;
};

/// The communicators over several nodes that one member is in: one, and those split off it. Who waits in one
/// of them for a member asks whether it is there. A member answers in all of them while it waits in any one,
/// on its node or for a message, and is not taken for one that has stopped.
///
/// These communicators share it, and it borrows them. Any thread may use it.
class OwnCommunicators {
 public:
  void add(NodeCommunicatorImpl& communicator);
  /// Once it returns, no other thread uses `communicator` from here.
  void remove(const NodeCommunicatorImpl& communicator);

  /// For a member that waits: answers those that ask, if it has not done so just now.
  void answer_questions();

 private:
  /// Members that ask wait for half a second.
  static constexpr std::chrono::milliseconds kBetweenLooks{20};

  std::mutex mutex_;
  std::vector<NodeCommunicatorImpl*> communicators_;
  Deadline next_look_ = Deadline::after(kBetweenLooks);
};

}  // namespace cohort::node
