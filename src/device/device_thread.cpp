#include "device_thread.h"

#include <atomic>
#include <thread>

#include <cohort/base/error.h>
#include <cohort/base/event_count.h>
#include <cohort/base/log.h>

#include "base/quiet_thread.h"
#include "machine.h"

namespace cohort {

class DeviceThread::Impl {
 public:
  explicit Impl(std::vector<int> cores)
      : thread_(start_program_thread([this, cores = std::move(cores)] { serve(cores); })) {}

  ~Impl() {
    wait();
    hand_over(State::kEnding);
  }

  void submit(std::function<void()> task) {
    COHORT_CHECK(state_.load() == State::kIdle);
    task_ = std::move(task);
    hand_over(State::kBusy);
  }

  void wait() {
    events_.wait_until([this] { return state_.load() == State::kIdle; });
  }

 private:
  /// While idle, the owner may access the task, otherwise the thread.
  enum class State { kIdle, kBusy, kEnding };

  void hand_over(State state) {
    state_.store(state);
    events_.notify();
  }

  void serve(const std::vector<int>& cores) {
    try {
      if (!cores.empty()) pin_current_thread(cores);
    } catch (const Error& error) {
      logging::warning("{}; the device runs unpinned", error.what());
    }
    while (true) {
      events_.wait_until([this] { return state_.load() != State::kIdle; });
      if (state_.load() == State::kEnding) return;
      task_();
      task_ = nullptr;
      hand_over(State::kIdle);
    }
  }

  EventCount events_;
  std::atomic<State> state_{State::kIdle};
  std::function<void()> task_;
  std::jthread thread_;  // last: it starts only when the rest exists
};

DeviceThread::DeviceThread(std::vector<int> cores) : impl_(std::make_unique<Impl>(std::move(cores))) {}
DeviceThread::~DeviceThread() = default;
void DeviceThread::submit(std::function<void()> task) { impl_->submit(std::move(task)); }
void DeviceThread::wait() { impl_->wait(); }

}  // namespace cohort
