// What the parts of the stand-in share: the GPUs that it pretends to have, the objects behind CUDA's
// handles, and the count of calls that tests ask for.
//
//   GPU_STAND_IN_DEVICES      how many GPUs the host has; 0 when unset
//   GPU_STAND_IN_MEMORY       bytes of each; 1 GiB when unset
//   GPU_STAND_IN_NO_PEERS     when set, no GPU reads the memory of another
//   CUDA_VISIBLE_DEVICES      as CUDA has it, numbers only
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <cuda_runtime_api.h>

#include "capture.h"
#include "late_queue.h"

// Tests look this up in the running process: how often the function of this name was called.
extern "C" std::uint64_t gpu_stand_in_calls(const char* function);

// How many tasks a stream takes, 0: any number. A thread that queues one more blocks until there is room, and
// with it all threads that call CUDA, which holds a lock there.
extern "C" void gpu_stand_in_limit_queues(std::size_t tasks);

// A graph is not synchronized: a process in which two threads work on one at once ends. For work on the graph
// that captures the stream which takes longer than a call of CUDA's, and perhaps longer than the stream: what
// it enters, to be left; null when none captures it.
extern "C" void* gpu_stand_in_enter_graph(cudaStream_t stream);
extern "C" void gpu_stand_in_leave_graph(void* entered);

// As CUDA's user objects: the graph that captures the stream destroys `data` in its end. False, and nothing
// is done, when none does.
extern "C" bool gpu_stand_in_give_to_graph(cudaStream_t stream, void* data, void (*destroy)(void*));

// Ends the use of a GPU by this process, as an illegal access does: from now on calls on it give this error.
// 0 ends that again, which no real GPU does.
extern "C" void gpu_stand_in_fail(int device, cudaError_t error);

// A kernel of `device` uses what lies at `data`. If it may not, that fails the GPU, and says so on stderr.
extern "C" void gpu_stand_in_touch(int device, const void* data);

namespace gpu_stand_in {

/// Counts a call of the function that says it. Blocks while another thread is blocked inside CUDA.
void count_call(std::string_view function);

/// Remembers `status` for cudaGetLastError, and returns it.
cudaError_t report(cudaError_t status);

/// For calls that need the GPU. Also an error once a process is ending, when CUDA has shut down: before the
/// destructors of what was made before its first call.
[[nodiscard]] cudaError_t require_usable(int device);

/// The host's numbers of the GPUs that this process sees.
[[nodiscard]] const std::vector<int>& visible_devices();
[[nodiscard]] bool is_device(int device);
[[nodiscard]] int current_device();
[[nodiscard]] std::size_t memory_of_each();

/// The queue of a stream; one for all of CUDA's default streams of the current device.
[[nodiscard]] std::shared_ptr<LateQueue> queue_of(cudaStream_t stream);

/// Blocks until everything on every stream of `device` has run.
void run_all(int device);

/// What a program has made with CUDA and not destroyed yet. When a GPU fails, its objects are CUDA's affair:
/// a leak check must not find them lost then, but must before. So they are out of its sight until that
/// moment.
class Handles {
 public:
  [[nodiscard]] static Handles& of_this_process() {
    static Handles& instance = *new Handles;
    return instance;
  }

  void add(const void* object, int device) {
    const std::lock_guard lock(mutex_);
    hidden_[hidden(object)] = device;
  }
  void remove(const void* object) {
    const std::lock_guard lock(mutex_);
    hidden_.erase(hidden(object));
  }
  void give_up(int device) {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, its_device] : hidden_) {
      if (its_device == device) given_up_.push_back(~object);
    }
  }

 private:
  static std::uintptr_t hidden(const void* object) { return ~reinterpret_cast<std::uintptr_t>(object); }

  std::mutex mutex_;
  std::map<std::uintptr_t, int> hidden_;
  std::vector<std::uintptr_t> given_up_;
};

}  // namespace gpu_stand_in

struct CUstream_st {
  std::shared_ptr<gpu_stand_in::LateQueue> queue;
};

struct CUevent_st {
  int device = 0;
  std::shared_ptr<gpu_stand_in::LateQueue> queue;  ///< null before the first record
  std::uint64_t place = 0;
  std::shared_ptr<const gpu_stand_in::CapturedPlace> captured;  ///< instead, when last recorded in a capture
  /// When its stream reached it; null for one that does not keep the time.
  std::shared_ptr<std::atomic<std::chrono::steady_clock::duration>> reached;
};
