// A rank's communicator of the NCCL stand-in. Its operations take a while: a meeting runs on a thread, a
// launch ends only after it has been polled several times, so that a caller that does not poll is too early.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nccl.h>

#include "nccl_arena.h"
#include "nccl_exchange.h"

namespace nccl_stand_in {

/// State that running launches and the meeting's thread share with the communicator, which may be destroyed
/// first.
struct State {
  std::unique_ptr<Arena> arena;
  std::atomic<bool> aborted{false};
  std::atomic<int> running{0};
  std::atomic<int> graphs{0};                      ///< launches that they hold
  std::atomic<ncclResult_t> failure{ncclSuccess};  ///< for good

  std::mutex mutex;
  std::string last_error;  ///< with the lock
};

/// Takes the fault that was injected for `rank`, if it is one of these.
[[nodiscard]] int take_fault(int rank, std::initializer_list<int> faults);

/// Ends the process.
[[noreturn]] void give_up(const char* why);

/// Registrations and windows end with their communicator.
void forget_registrations(ncclComm_t comm);

}  // namespace nccl_stand_in

struct ncclComm {
  explicit ncclComm(bool is_blocking);
  ~ncclComm();

  /// Meets the other ranks on a thread; `in_the_end` is called there once all are here.
  void meet(
      const std::string& name, int rank, int size, std::function<void()> in_the_end = [] {});
  [[nodiscard]] ncclResult_t wait_for_meeting();
  void split(int color, int key, ncclComm_t* made);
  /// Waits on a thread until all ranks have come with as many bytes and digests of the same other windows;
  /// `in_the_end` is called there.
  void register_window(std::uint64_t bytes, std::uint64_t others, std::function<void()> in_the_end);

  /// Under way until it has been asked after, or put on the stream at once by one that blocks.
  void launch(nccl_stand_in::Exchange exchange, cudaStream_t stream);
  void finalize() { finalizing_ = true; }
  /// Ends what is under way. As NCCL's, it returns only when no graph has launches of it any more, and the
  /// others have closed their connections.
  void abort();
  /// Returns when the others have closed their connections.
  void close();

  /// As ncclCommGetAsyncError; moves on what is under way.
  [[nodiscard]] ncclResult_t progress();
  [[nodiscard]] bool is_busy();
  ncclResult_t refuse(ncclResult_t result, const std::string& why);

  const bool blocking;
  const std::shared_ptr<nccl_stand_in::State> state = std::make_shared<nccl_stand_in::State>();

 private:
  struct Launch {
    nccl_stand_in::Exchange exchange;
    cudaStream_t stream = nullptr;     // may be destroyed before a launch that is aborted
    std::shared_ptr<void> graph = {};  // while a thread of NCCL's works on it
  };
  void put_on_stream(Launch launch);
  void note_order(cudaStream_t stream);

  std::mutex calls_;  ///< an abort waits for other calls only when it has ended what they wait for

  std::atomic<bool> meeting_{false};
  std::thread thread_;
  std::vector<Launch> launches_;  ///< under way
  int asked_ = 0;
  bool finalizing_ = false;
  std::uint64_t splits_ = 0;
  std::uint64_t windows_ = 0;
};
