// The progress thread of this process: it drives the calls that were started and that no
// thread waits for. It is started with the first asynchronous call, sleeps when nothing
// is in flight, and ends with the process. Without it, before its start and after its
// end, or where the system has no thread left for it, calls are driven by the threads
// that wait for them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort::node {

class NodeCommunicatorImpl;

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
  [[nodiscard]] bool has_thread() const noexcept { return thread_.get_id() != std::thread::id(); }
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
  std::thread thread_;
};

}  // namespace cohort::node
