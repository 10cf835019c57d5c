// The progress thread of this process: it drives the calls that were started and that
// nobody waits for. It is started with the first asynchronous call, sleeps when nothing
// is in flight, and ends with the process.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace cohort::node {

class Member;

class Progress {
 public:
  [[nodiscard]] static Progress& of_this_process();

  /// Drives `member` until nothing of it is in flight, and keeps it alive meanwhile.
  void attend(std::shared_ptr<Member> member);

  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  Progress();
  void serve();
  /// True when something moved.
  static bool advance(std::vector<std::shared_ptr<Member>>& members);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Member>> arrivals_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace cohort::node
