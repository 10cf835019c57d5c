#include <cohort/device/device_thread.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/device/topology.h>

namespace cohort {

class DeviceThread::Impl {
 public:
  explicit Impl(std::vector<int> cores) : thread_([this, cores = std::move(cores)] { serve(cores); }) {}

  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void submit(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      COHORT_CHECK(!task_);
      task_ = std::move(task);
    }
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !task_; });
  }

 private:
  void serve(const std::vector<int>& cores) {
    try {
      if (!cores.empty()) pin_current_thread(cores);
    } catch (const Error& error) {
      log::warning("{}; the device runs unpinned", error.what());
    }
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return task_ || ending_; });
      if (!task_) return;
      lock.unlock();
      task_();
      lock.lock();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool ending_ = false;
  std::thread thread_;  // last: it starts only when the rest exists
};

DeviceThread::DeviceThread(std::vector<int> cores) : impl_(std::make_unique<Impl>(std::move(cores))) {}
DeviceThread::~DeviceThread() = default;
void DeviceThread::submit(std::function<void()> task) { impl_->submit(std::move(task)); }
void DeviceThread::wait() { impl_->wait(); }

}  // namespace cohort
