#include <algorithm>
#include <map>
#include <mutex>

#include "memory.h"
#include "stand_in.h"

namespace gpu_stand_in {
namespace {

struct Queues {
  std::mutex mutex;
  std::vector<std::weak_ptr<LateQueue>> all;
  std::map<int, std::shared_ptr<LateQueue>> defaults;  // CUDA's default stream of each GPU
};

Queues& queues() {
  static Queues& instance = *new Queues;
  return instance;
}

/// With the lock.
std::shared_ptr<LateQueue> make_queue(int device) {
  auto queue = std::make_shared<LateQueue>(device);
  std::erase_if(queues().all, [](const auto& known) { return known.expired(); });
  queues().all.push_back(queue);
  return queue;
}

}  // namespace

std::shared_ptr<LateQueue> queue_of(cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy && stream != cudaStreamPerThread) return stream->queue;
  const std::lock_guard lock(queues().mutex);
  std::shared_ptr<LateQueue>& queue = queues().defaults[current_device()];
  if (queue == nullptr) queue = make_queue(current_device());
  return queue;
}

void run_all(int device) {
  std::vector<std::shared_ptr<LateQueue>> own;
  {
    const std::lock_guard lock(queues().mutex);
    for (const auto& known : queues().all) {
      std::shared_ptr<LateQueue> queue = known.lock();
      if (queue != nullptr && queue->device() == device) own.push_back(std::move(queue));
    }
  }
  for (const auto& queue : own) queue->run_to(queue->end());
}

}  // namespace gpu_stand_in

using namespace gpu_stand_in;

#pragma GCC visibility push(default)
extern "C" {

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  count_call("cudaStreamCreateWithPriority");
  if (!is_device(current_device())) return report(cudaErrorNoDevice);
  const std::lock_guard lock(queues().mutex);
  *stream = new CUstream_st{make_queue(current_device())};
  Handles::of_this_process().add(*stream, current_device());
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  count_call("cudaStreamDestroy");
  stream->queue->run_to(stream->queue->end());
  Handles::of_this_process().remove(stream);
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  *device = queue_of(stream)->device();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  count_call("cudaStreamQuery");
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (const cudaError_t status = require_not_captured(queue); status != cudaSuccess) return status;
  if (const cudaError_t status = require_usable(queue->device()); status != cudaSuccess) return status;
  return queue->reached(queue->end()) ? require_usable(queue->device()) : cudaErrorNotReady;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  count_call("cudaStreamSynchronize");
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (const cudaError_t status = require_not_captured(queue); status != cudaSuccess) return status;
  if (const cudaError_t status = require_usable(queue->device()); status != cudaSuccess) return status;
  queue->run_to(queue->end());
  Memory::of_this_process().trim_pool(queue->device());
  return require_usable(queue->device());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  count_call("cudaStreamWaitEvent");
  const std::shared_ptr<LateQueue> waiting = queue_of(stream);
  if (event->captured != nullptr) return wait_for(waiting, *event->captured);
  if (event->queue == nullptr) return cudaSuccess;
  if (captured_place(waiting) != nullptr) return refuse_isolation(waiting);
  return submit(waiting, [queue = event->queue, place = event->place] { queue->run_to(place); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  count_call("cudaLaunchHostFunc");
  return submit(queue_of(stream), [=] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  count_call("cudaEventCreateWithFlags");
  *event = new CUevent_st{current_device(), nullptr, 0, nullptr, nullptr};
  Handles::of_this_process().add(*event, current_device());
  if ((flags & cudaEventDisableTiming) == 0)
    (*event)->reached = std::make_shared<std::atomic<std::chrono::steady_clock::duration>>();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  count_call("cudaEventDestroy");
  Handles::of_this_process().remove(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  count_call("cudaEventRecord");
  std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (queue->device() != event->device) return report(cudaErrorInvalidResourceHandle);
  const auto note_time = [reached = event->reached] {
    *reached = std::chrono::steady_clock::now().time_since_epoch();
  };
  if (event->reached != nullptr) {
    if (const cudaError_t status = submit(queue, note_time); status != cudaSuccess) return status;
  }
  event->captured = captured_place(queue);
  event->place = queue->end();
  event->queue = std::move(queue);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  count_call("cudaEventQuery");
  if (event->captured != nullptr) return refuse_captured(*event->captured);
  if (const cudaError_t status = require_safe(); status != cudaSuccess) return status;
  if (const cudaError_t status = require_usable(event->device); status != cudaSuccess) return status;
  const bool is_done = event->queue == nullptr || event->queue->reached(event->place);
  return is_done ? require_usable(event->device) : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  count_call("cudaEventElapsedTime");
  for (auto* const event : {start, end}) {
    if (event->captured != nullptr) return refuse_captured(*event->captured);
    if (event->queue == nullptr || event->reached == nullptr) return report(cudaErrorInvalidResourceHandle);
    if (!event->queue->reached(event->place)) return report(cudaErrorNotReady);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(end->reached->load() - start->reached->load()).count();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  count_call("cudaEventSynchronize");
  if (event->captured != nullptr) return refuse_captured(*event->captured);
  if (const cudaError_t status = require_safe(); status != cudaSuccess) return status;
  if (event->queue != nullptr) event->queue->run_to(event->place);
  Memory::of_this_process().trim_pool(event->device);
  return require_usable(event->device);
}

}  // extern "C"
#pragma GCC visibility pop
