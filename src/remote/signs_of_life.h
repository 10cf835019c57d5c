// The thread by which a task shows others that it lives, whatever its own threads are busy with. A process
// that is stopped gives no sign.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "bell.h"

namespace cohort::remote {

/// A connection whose other end does not see this task's bell.
class HearsSigns {
 public:
  virtual ~HearsSigns() = default;

  /// Called by the thread of SignsOfLife.
  virtual void give_sign() noexcept = 0;
};

class SignsOfLife {
 public:
  /// `bell` outlives this.
  SignsOfLife(Bell& bell, std::chrono::milliseconds interval);
  ~SignsOfLife();

  /// Both may be called by any thread. After `remove`, `listener` is not called any more.
  void add(HearsSigns& listener);
  void remove(HearsSigns& listener);

 private:
  void run();

  Bell* bell_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::vector<HearsSigns*> listeners_;
  std::thread thread_;
};

}  // namespace cohort::remote
