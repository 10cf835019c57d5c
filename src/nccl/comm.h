// A Comm is one member's communicator of NCCL, on one GPU. Everything that can take long is begun and then
// polled, so that a deadline, or the failure of another member, ends it.
//
// Its end can take long, too, and cannot be polled: NCCL waits there for other members, and after a failure
// perhaps for ever. So a thread of its own ends it, which nobody waits for beyond a deadline.
//
// One thread at a time begins something; `check` and `abort` may be called by others meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <nccl.h>

#include <cohort/base/deadline.h>
#include <cohort/device/device.h>

#include "calls.h"

namespace cohort::nccl {

class Comm {
 public:
  /// Called from time to time while something is under way; throws to give it up.
  using Look = std::function<void()>;

  /// `owner` names the member in warnings.
  Comm(std::string owner, Device device);

  /// The members' meeting, before anything else. Collective over `size` members.
  /// @throws DeadlineExceeded, what `look` throws, or NCCL's error.
  void meet(int size, const ncclUniqueId& id, int rank, const Deadline& deadline, const Look& look);

  /// Without `finalize` before it, what is under way is aborted. As `wait_for_end`.
  ~Comm();

  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  /// A group of the members that give the same color; null for a member that gives none. Collective; nothing
  /// may be under way.
  [[nodiscard]] std::unique_ptr<Comm> split(std::optional<int> color, int key, const Deadline& deadline,
                                            const Look& look);

  /// Makes the calls of NCCL that `issue` makes, as one group; all of it is on its streams when this returns.
  void launch(const std::function<void(ncclComm_t)>& issue, const Deadline& deadline, const Look& look);

  /// Nothing may be under way.
  [[nodiscard]] void* register_memory(void* data, std::size_t bytes);
  /// Does nothing once the communicator is gone.
  void deregister(void* registration) noexcept;

  /// Collective over all. Nothing may be under way.
  [[nodiscard]] calls::Window open_window(void* data, std::size_t bytes, const Deadline& deadline,
                                          const Look& look);
  /// As `deregister`.
  void close_window(calls::Window window) noexcept;

  /// @throws what NCCL has found to be wrong since.
  void check();

  /// Begins the end, without waiting for it: gives everything back, with the other members, until which NCCL
  /// may wait for them. Nothing may be under way.
  void finalize(const Deadline& deadline) noexcept;

  /// Begins to end what is under way, on this GPU alone, without waiting for it. NCCL gets to its end only
  /// when graphs that hold launches have gone, and perhaps only when all members have aborted. Nothing else
  /// may be called afterwards.
  void abort() noexcept;

  /// Waits until what was begun by `finalize` or `abort` has ended. If it has not by the deadline, it is left
  /// to itself, with a warning, and `still_used` is kept until it has.
  void wait_for_end(const Deadline& deadline, std::shared_ptr<const void> still_used) noexcept;

 private:
  struct Handles;

  void begin_end(std::optional<Deadline> finalize_by) noexcept;
  void settle(const Deadline& deadline, const Look& look, const char* what);
  [[nodiscard]] bool is_settled();

  std::string owner_;
  Device device_;
  std::shared_ptr<Handles> handles_;  ///< shared with the thread
  std::unique_ptr<Comm>
      unfinished_group_;  ///< after a split that has failed; the members abort it after this
  std::jthread end_;
};

}  // namespace cohort::nccl
