#include "comm.h"

#include <chrono>
#include <thread>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>

#include "calls.h"

namespace cohort::nccl {
namespace {

using namespace std::chrono_literals;

/// Between two looks at what is under way: its steps take micro- to milliseconds.
constexpr auto kNap = 20us;

}  // namespace

Comm::Comm(Device device, int size, const ncclUniqueId& id, int rank, const Deadline& deadline,
           const Look& look)
    : device_(device) {
  const cuda::CurrentDevice current(device);
  comm_ = calls::begin_init(size, id, rank);
  try {
    settle(deadline, look, "the members' meeting");
  } catch (...) {
    abort();
    throw;
  }
}

Comm::~Comm() { abort(); }

std::unique_ptr<Comm> Comm::split(std::optional<int> color, int key, const Deadline& deadline,
                                  const Look& look) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(mutex_);
    calls::begin_split(comm_, color.value_or(NCCL_SPLIT_NOCOLOR), key, group_);
  }
  settle(deadline, look, "a split");
  if (!color) return nullptr;
  auto made = std::unique_ptr<Comm>(new Comm(device_, group_));
  made->settle(deadline, look, "a split");
  return made;
}

void Comm::launch(const std::function<void(ncclComm_t)>& issue, const Deadline& deadline, const Look& look) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(mutex_);
    calls::group_start();
    try {
      issue(comm_);
    } catch (...) {
      calls::group_end();
      throw;
    }
    calls::group_end();
  }
  settle(deadline, look, "a launch");
}

void* Comm::register_memory(void* data, std::size_t bytes) {
  const cuda::CurrentDevice current(device_);
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw Aborted("NCCL's communicator was aborted");
  return calls::register_memory(comm_, data, bytes);
}

void Comm::deregister(void* registration) noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  cuda::release_on(device_, [&] { calls::deregister(comm_, registration); });
}

calls::Window Comm::open_window(void* data, std::size_t bytes, const Deadline& deadline, const Look& look) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) throw Aborted("NCCL's communicator was aborted");
    window_ = nullptr;
    calls::begin_window(comm_, data, bytes, window_);
  }
  settle(deadline, look, "the registration of a window");
  return window_;
}

void Comm::close_window(calls::Window window) noexcept {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  cuda::release_on(device_, [&] { calls::close_window(comm_, window); });
}

bool Comm::is_settled() {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) throw Aborted("NCCL's communicator was aborted");
  return calls::is_settled(comm_);
}

void Comm::settle(const Deadline& deadline, const Look& look, const char* what) {
  while (!is_settled()) {
    look();
    if (deadline.expired()) throw DeadlineExceeded("NCCL did not come to the end of {}", what);
    std::this_thread::sleep_for(kNap);
  }
}

void Comm::check() { static_cast<void>(is_settled()); }

void Comm::finalize(const Deadline& deadline) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(mutex_);
    calls::begin_finalize(comm_);
  }
  settle(
      deadline, [] {}, "its last calls");
  const std::lock_guard lock(mutex_);
  calls::destroy(comm_);
  comm_ = nullptr;
}

void Comm::abort() noexcept {
  ncclComm_t gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    gone = std::exchange(comm_, nullptr);
  }
  if (gone != nullptr) calls::abort(gone);
}

}  // namespace cohort::nccl
