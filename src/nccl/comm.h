// A Comm is one member's communicator of NCCL, on one GPU. Everything that can take long is begun and then
// polled, so that a deadline, or the failure of another member, ends it.
//
// One thread at a time begins something; `check` and `abort` may be called by others meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <nccl.h>

#include <cohort/base/deadline.h>
#include <cohort/device/device.h>

#include "calls.h"

namespace cohort::nccl {

class Comm {
 public:
  /// Called from time to time while something is under way; throws to give it up.
  using Look = std::function<void()>;

  /// Collective over `size` members. @throws DeadlineExceeded, what `look` throws, or NCCL's error.
  Comm(Device device, int size, const ncclUniqueId& id, int rank, const Deadline& deadline, const Look& look);

  /// Without `finalize` before it, what is under way is aborted.
  ~Comm();

  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  /// A group of the members that give the same color; null for a member that gives none. Collective.
  [[nodiscard]] std::unique_ptr<Comm> split(std::optional<int> color, int key, const Deadline& deadline,
                                            const Look& look);

  /// Makes the calls of NCCL that `issue` makes, as one group; all of it is on its streams when this returns.
  void launch(const std::function<void(ncclComm_t)>& issue, const Deadline& deadline, const Look& look);

  /// Nothing may be under way.
  [[nodiscard]] void* register_memory(void* data, std::size_t bytes);
  /// Does nothing once the communicator is gone.
  void deregister(void* registration) noexcept;

  /// Collective over all; null where NCCL has no windows for these GPUs. Nothing may be under way.
  [[nodiscard]] calls::Window open_window(void* data, std::size_t bytes, const Deadline& deadline,
                                          const Look& look);
  /// As `deregister`.
  void close_window(calls::Window window) noexcept;

  /// @throws what NCCL has found to be wrong since.
  void check();

  /// Waits until all members have finished what was launched, and gives everything back.
  void finalize(const Deadline& deadline);

  /// Ends what is under way, on this GPU alone. Nothing else may be called afterwards. Returns only when
  /// graphs that hold launches have gone.
  void abort() noexcept;

 private:
  Comm(Device device, ncclComm_t comm) : device_(device), comm_(comm) {}
  void settle(const Deadline& deadline, const Look& look, const char* what);
  [[nodiscard]] bool is_settled();

  Device device_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;  ///< null once it is gone
  // What NCCL makes of a split and of memory; it may write there until this communicator is gone.
  ncclComm_t group_ = nullptr;
  calls::Window window_ = nullptr;
};

}  // namespace cohort::nccl
