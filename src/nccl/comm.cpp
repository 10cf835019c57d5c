#include "comm.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <cohort/base/error.h>
#include <cohort/base/log.h>
#include <cohort/cuda/current_device.h>

#include "base/quiet_thread.h"
#include "calls.h"

namespace cohort::nccl {
namespace {

using namespace std::chrono_literals;

/// Between two looks at what is under way: its steps take micro- to milliseconds.
constexpr auto kNap = 20us;
/// How long to look without naps, which the system makes several times as long. NCCL launches within this
/// time.
constexpr auto kTimeOfLaunch = 200us;
/// How long an abort waits for calls of NCCL to return. CUDA may block them until the abort.
constexpr auto kTimeToReturn = 1s;
/// How long the end may take where nobody has said it.
constexpr auto kTimeToEnd = 10s;

}  // namespace

/// What NCCL may use until its communicator is gone.
struct Comm::Handles {
  std::mutex mutex;                       ///< held by who calls NCCL
  std::atomic<ncclComm_t> comm{nullptr};  ///< null before the meeting, and once it is gone
  std::atomic<bool> is_ending{false};
  // What NCCL makes of a split and of memory.
  ncclComm_t group = nullptr;
  calls::Window window = nullptr;

  /// What the thread is to do, and whether it has.
  std::mutex end_mutex;
  std::condition_variable end_changed;
  bool is_to_end = false;
  bool has_ended = false;
  std::optional<Deadline> finalize_by;  ///< nothing for an abort
  std::shared_ptr<const void> still_used;

  void end_in_time(Device device);
  void end();
  [[nodiscard]] bool finalize(const Deadline& deadline);
  void abort();
};

/// The thread. Its GPU is current from the beginning, since CUDA may block later on.
void Comm::Handles::end_in_time(Device device) {
  std::optional<cuda::CurrentDevice> current;
  try {
    current.emplace(device);
  } catch (const Error&) {
    // NCCL makes it current as well.
  }
  {
    std::unique_lock lock(end_mutex);
    end_changed.wait(lock, [this] { return is_to_end; });
  }
  end();
  std::shared_ptr<const void> used_no_more;  // freed without the lock: it may be users' memory
  const std::lock_guard lock(end_mutex);
  has_ended = true;
  used_no_more = std::move(still_used);
  end_changed.notify_all();
}

void Comm::Handles::end() {
  if (finalize_by && finalize(*finalize_by)) return;
  abort();
}

/// False where it cannot be finalized, or takes too long.
bool Comm::Handles::finalize(const Deadline& deadline) {
  try {
    const std::lock_guard lock(mutex);
    calls::begin_finalize(comm);
    while (!calls::is_settled(comm)) {
      if (deadline.expired()) return false;
      std::this_thread::sleep_for(kNap);
    }
  } catch (const Error& error) {
    logging::debug("NCCL's communicator is ended by force: {}", error.what());
    return false;
  }
  calls::destroy(comm.exchange(nullptr));
  return true;
}

void Comm::Handles::abort() {
  ncclComm_t gone = nullptr;
  ncclComm_t unfinished = nullptr;
  {
    const Deadline deadline = Deadline::after(kTimeToReturn);
    std::unique_lock lock(mutex, std::try_to_lock);
    while (!lock.owns_lock() && !deadline.expired()) {
      std::this_thread::sleep_for(kNap);
      static_cast<void>(lock.try_lock());
    }
    gone = comm.exchange(nullptr);
    unfinished = std::exchange(group, nullptr);
  }
  if (gone != nullptr) calls::abort(gone);
  // A group that was not finished; NCCL has made no more of it since.
  if (unfinished != nullptr) calls::abort(unfinished);
}

Comm::Comm(std::string owner, Device device)
    : owner_(std::move(owner)),
      device_(device),
      handles_(std::make_shared<Handles>()),
      end_(start_quiet_thread([handles = handles_, device] { handles->end_in_time(device); })) {}

void Comm::meet(int size, const ncclUniqueId& id, int rank, const Deadline& deadline, const Look& look) {
  const cuda::CurrentDevice current(device_);
  handles_->comm = calls::begin_init(size, id, rank);
  settle(deadline, look, "the members' meeting");
}

Comm::~Comm() {
  abort();
  wait_for_end(Deadline::after(kTimeToEnd), nullptr);
}

std::unique_ptr<Comm> Comm::split(std::optional<int> color, int key, const Deadline& deadline,
                                  const Look& look) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(handles_->mutex);
    calls::begin_split(handles_->comm, color.value_or(NCCL_SPLIT_NOCOLOR), key, handles_->group);
  }
  settle(deadline, look, "a split");
  if (!color) return nullptr;
  unfinished_group_ = std::make_unique<Comm>(owner_, device_);
  {
    const std::lock_guard lock(handles_->mutex);
    unfinished_group_->handles_->comm = std::exchange(handles_->group, nullptr);
  }
  unfinished_group_->settle(deadline, look, "a split");
  return std::move(unfinished_group_);
}

void Comm::launch(const std::function<void(ncclComm_t)>& issue, const Deadline& deadline, const Look& look) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(handles_->mutex);
    if (handles_->is_ending) throw Aborted("NCCL's communicator was aborted");
    calls::group_start();
    try {
      issue(handles_->comm);
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
  const std::lock_guard lock(handles_->mutex);
  if (handles_->is_ending) throw Aborted("NCCL's communicator was aborted");
  return calls::register_memory(handles_->comm, data, bytes);
}

void Comm::deregister(void* registration) noexcept {
  const std::lock_guard lock(handles_->mutex);
  if (handles_->is_ending) return;
  cuda::release_on(device_, [&] { calls::deregister(handles_->comm, registration); });
}

calls::Window Comm::open_window(void* data, std::size_t bytes, const Deadline& deadline, const Look& look) {
  const cuda::CurrentDevice current(device_);
  {
    const std::lock_guard lock(handles_->mutex);
    if (handles_->is_ending) throw Aborted("NCCL's communicator was aborted");
    handles_->window = nullptr;
    calls::begin_window(handles_->comm, data, bytes, handles_->window);
  }
  settle(deadline, look, "the registration of a window");
  return handles_->window;
}

void Comm::close_window(calls::Window window) noexcept {
  const std::lock_guard lock(handles_->mutex);
  if (handles_->is_ending) return;
  cuda::release_on(device_, [&] { calls::close_window(handles_->comm, window); });
}

bool Comm::is_settled() {
  if (handles_->is_ending) throw Aborted("NCCL's communicator was aborted");
  const std::lock_guard lock(handles_->mutex);
  if (handles_->is_ending) throw Aborted("NCCL's communicator was aborted");
  return calls::is_settled(handles_->comm);
}

void Comm::settle(const Deadline& deadline, const Look& look, const char* what) {
  const auto begin = Deadline::Clock::now();
  while (!is_settled()) {
    look();
    if (deadline.expired()) throw DeadlineExceeded("NCCL did not come to the end of {}", what);
    if (Deadline::Clock::now() - begin < kTimeOfLaunch)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kNap);
  }
}

void Comm::check() { static_cast<void>(is_settled()); }

void Comm::finalize(const Deadline& deadline) noexcept { begin_end(deadline); }

void Comm::abort() noexcept { begin_end(std::nullopt); }

void Comm::begin_end(std::optional<Deadline> finalize_by) noexcept {
  if (handles_->is_ending.exchange(true)) return;
  const std::lock_guard lock(handles_->end_mutex);
  handles_->finalize_by = finalize_by;
  handles_->is_to_end = true;
  handles_->end_changed.notify_all();
}

void Comm::wait_for_end(const Deadline& deadline, std::shared_ptr<const void> still_used) noexcept {
  if (!end_.joinable()) return;
  {
    std::unique_lock lock(handles_->end_mutex);
    const auto has_ended = [this] { return handles_->has_ended; };
    if (!handles_->end_changed.wait_until(lock, deadline.at(), has_ended)) {
      handles_->still_used = std::move(still_used);
      logging::warning(
          "{}: NCCL has not ended its communicator on {} in time, and is left to it: it waits for the other "
          "members to end theirs; end a communicator on all members at about the same time",
          owner_, to_string(device_));
      return end_.detach();
    }
  }
  end_.join();
}

}  // namespace cohort::nccl
