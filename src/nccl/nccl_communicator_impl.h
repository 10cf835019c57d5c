// The implementation of one member's communicator: NCCL's with a stream of its own, and two on the host, one
// on which members agree and one for messages. Collectives are launched one after the other, in the order in
// which they were called, over all communicators of the GPU (launch_queue.h): by the caller while nothing is
// queued, otherwise by the queue's thread, since members have to agree first and an asynchronous call does
// not wait for that.
//
// Waiting for a call orders the GPU's compute stream after it; no thread waits for the GPU. Errors there are
// found by the member's first thread, which watches everything in flight, and thrown by the next call, or
// where the host waits for the GPU. CUDA may block this thread together with all others that call it, when a
// queue of CUDA's is full of work behind a call that hangs. So a second one, which calls no CUDA, knows the
// deadlines, and it sees failures of other members while nothing is in flight.
//
// Calls that are captured are agreed on once, when they are made, and launched by the thread that makes them:
// CUDA's graphs must not be touched by two threads at once. Each launch of their graph is then in flight as a
// call is; whether all members have launched is asked only when it takes too long.
//
// The communicator, each Work and each graph co-own it. The first error of any member ends it for all.
//
// The words are explained in docs/collectives.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <cohort/cuda/event.h>
#include <cohort/cuda/stream.h>

#include "collective/call/operation_in_flight.h"
#include "collective/communicator_base.h"
#include "comm.h"
#include "cuda/capture.h"
#include "cuda/guard.h"
#include "launch_queue.h"
#include "symmetric_memory.h"

namespace cohort::nccl {

/// Events that ended calls no longer need, for later calls: making one in the driver is slow.
class EventPool {
 public:
  explicit EventPool(Device device) : device_(device) {}

  [[nodiscard]] cuda::Event take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        cuda::Event event = std::move(free_.back());
        free_.pop_back();
        return event;
      }
    }
    return cuda::Event(device_);
  }

  void give_back(cuda::Event event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(event));
  }

 private:
  Device device_;
  std::mutex mutex_;
  std::vector<cuda::Event> free_;
};

/// The communicators of one member; `control` and `messages` have the same members as `comm`, and take
/// tensors on the GPU through the host.
struct CommunicatorParts {
  Device device = {};
  std::unique_ptr<Communicator> control = {};
  std::unique_ptr<Communicator> messages = {};
  std::unique_ptr<Comm> comm = {};
};

class NcclCommunicatorImpl final : public cuda::Guard,
                                   public std::enable_shared_from_this<NcclCommunicatorImpl> {
 public:
  explicit NcclCommunicatorImpl(CommunicatorParts parts);
  ~NcclCommunicatorImpl() override;

  NcclCommunicatorImpl(const NcclCommunicatorImpl&) = delete;
  NcclCommunicatorImpl& operator=(const NcclCommunicatorImpl&) = delete;

  [[nodiscard]] const Communicator& control() const noexcept { return *parts_.control; }

  void run(const CollectiveCall& call);
  [[nodiscard]] Work start(const CollectiveCall& call);

  /// The group of `split_members`, which this member is one of; nothing if there are none. Collective: all
  /// members are known to call it. Calls in flight are waited for, and no other thread makes one meanwhile.
  [[nodiscard]] std::optional<CommunicatorParts> split(std::span<const SplitMember> split_members);

  [[nodiscard]] Device device() const noexcept { return parts_.device; }

  /// Memory that all members register, see symmetric_memory.h. Collective; calls in flight are waited for,
  /// and no other thread makes one meanwhile.
  [[nodiscard]] std::shared_ptr<const Buffer> allocate(std::size_t bytes);
  [[nodiscard]] const SymmetricMemory& symmetric_memory() const noexcept { return symmetric_memory_; }

  /// Any thread may call it.
  void abort(const Error& error);
  [[nodiscard]] std::optional<Error> failure();

  void require_sound() override;

  /// The communicator is destroyed. Calls whose Works are still held go on; the others are finished here.
  void close();

 private:
  struct Operation;
  friend class WorkInFlight<NcclCommunicatorImpl>;
  class Captured;
  using Clock = std::chrono::steady_clock;

  void require_usable();
  [[noreturn]] void throw_failure();
  void require_capturable(const CollectiveCall& call) const;
  void run_on_host(const CollectiveCall& call);
  void agree(Operation& operation);
  [[nodiscard]] std::shared_ptr<Operation> add(const CollectiveCall& call);
  void add_captured(std::shared_ptr<Operation> operation);
  void launch(Operation& operation);
  void launch_here(Operation& operation);
  void wait_for_room();

  /// The first thread.
  void watch_gpu();
  /// Looks at the operations in flight, in the order of the stream.
  void tend();
  [[nodiscard]] std::shared_ptr<Operation> first_in_flight();
  /// The second thread.
  void watch_clock(const std::stop_token& stop);
  void require_answer_of_cuda();
  /// Notes when the first thread begins to ask CUDA or NCCL, and when it has its answer.
  void note_question(bool is_asking);

  void conclude(Captured& captured);
  [[nodiscard]] std::shared_ptr<Operation> prepare_launch(const Captured& captured);
  void launched(std::shared_ptr<Operation> launch);

  void wait(Operation& operation);
  [[nodiscard]] bool done(Operation& operation) noexcept;
  /// True once the operation has ended, one way or the other.
  [[nodiscard]] bool poll(Operation& operation);
  void end(Operation& operation);
  /// Throws an error of NCCL's, or of another member. Waits for a thread that uses `control`.
  void look_for_failure();
  /// The same without waiting, unless some thread has looked within the last millisecond.
  void check_for_failure();
  void check_host_for_failure();
  void require_sound_host();
  void require_in_time(Operation& operation);
  [[nodiscard]] std::shared_ptr<Operation> find_unheld();
  void finish(Operation& operation);
  /// Waits until no call is in flight, however they end.
  void wait_for_all();
  void finish_before(const Deadline& deadline);
  /// Element-wise minimum over all members; `about` is a fingerprint that they must agree on.
  void exchange_least(std::vector<std::uint8_t>& numbers, std::uint64_t about);

  /// Ends the calls of all members with `error`, unless another error already has.
  void fail(const Error& error);
  [[nodiscard]] std::chrono::duration<double> timeout(const CollectiveCall& call) const;
  [[nodiscard]] std::string who() const;

  /// What is thrown on a member's own threads does not reach the program.
  static thread_local bool serves_a_member_;

  const CommunicatorParts parts_;
  const cuda::Stream stream_;
  EventPool events_;
  SymmetricMemory symmetric_memory_;
  int rank_;
  int size_;

  std::mutex on_host_;  ///< held while `control` is used
  const std::shared_ptr<LaunchQueue> launches_;

  std::mutex mutex_;  ///< not held during calls of CUDA's, which may block
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Operation>> in_flight_;  ///< not known to have ended
  std::vector<std::shared_ptr<Operation>> failed_;    ///< other members may still use their memory
  std::weak_ptr<Captured> captured_;                  ///< this member's calls in the capture under way
  std::optional<Error> failure_;
  bool is_owed_ = false;     ///< the program relies on a call that failed, and has not been told
  std::uint64_t calls_ = 0;  ///< on `control`
  Clock::time_point looked_;
  std::optional<Clock::time_point> asking_since_;  ///< the first thread is asking CUDA or NCCL
  bool ending_ = false;
  std::jthread gpu_watch_;  ///< started by the first call for the GPU
  std::jthread clock_watch_;
  std::optional<cuda::GuardScope> guards_gpu_;  ///< last, for it calls this
};

}  // namespace cohort::nccl
