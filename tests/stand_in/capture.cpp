#include "capture.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "stand_in.h"

namespace gpu_stand_in {

using Places = std::set<std::size_t>;  // of nodes

struct Node {
  std::function<void()> run;
  Places after;
};

/// What a graph and its launches share.
struct Nodes {
  std::vector<Node> all;
  std::vector<std::shared_ptr<void>> owned;  // goes with the graph and its launches

  void run(bool in_order) const {
    std::vector<bool> has_run(all.size());
    const auto is_ready = [&](std::size_t index) {
      return !has_run[index] &&
             std::ranges::all_of(all[index].after, [&](std::size_t before) { return has_run[before]; });
    };
    for (std::size_t step = 0; step < all.size(); ++step) {
      std::size_t next = in_order ? 0 : all.size() - 1;
      while (!is_ready(next)) next = in_order ? next + 1 : next - 1;
      all[next].run();
      has_run[next] = true;
    }
  }

  /// What comes before any of `ends`, and these.
  [[nodiscard]] Places up_to(const Places& ends) const {
    Places reached;
    std::vector<std::size_t> open(ends.begin(), ends.end());
    while (!open.empty()) {
      const std::size_t node = open.back();
      open.pop_back();
      if (reached.insert(node).second)
        open.insert(open.end(), all[node].after.begin(), all[node].after.end());
    }
    return reached;
  }
};

class Capture {
 public:
  std::shared_ptr<LateQueue> origin;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  std::shared_ptr<Nodes> nodes = std::make_shared<Nodes>();
  std::map<const LateQueue*, Places> ends;  // of each captured stream
  bool invalid = false;
  std::atomic<int> inside{0};  // threads that work on it

  void enter() {
    if (inside.fetch_add(1) == 0) return;
    std::fputs("GPU stand-in: two threads work on one graph at once\n", stderr);
    std::abort();
  }
  void leave() { --inside; }
};

struct CapturedPlace {
  std::weak_ptr<Capture> capture;
  Places ends;
};

}  // namespace gpu_stand_in

struct CUgraph_st {
  std::shared_ptr<gpu_stand_in::Nodes> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<gpu_stand_in::Nodes> nodes;
  bool in_order = true;
  std::shared_ptr<std::atomic<int>> launches = std::make_shared<std::atomic<int>>(0);  // that are not done
};

namespace gpu_stand_in {
namespace {

struct Captures {
  std::mutex mutex;
  std::vector<std::shared_ptr<Capture>> all;
};

Captures& captures() {
  static Captures& instance = *new Captures;
  return instance;
}

/// With the lock; null when the stream is not captured.
std::shared_ptr<Capture> capture_of(const LateQueue& queue) {
  for (const auto& capture : captures().all) {
    if (capture->ends.contains(&queue)) return capture;
  }
  return nullptr;
}

/// With the lock.
cudaError_t invalidate(Capture& capture, cudaError_t why) {
  if (capture.invalid) return report(cudaErrorStreamCaptureInvalidated);
  capture.invalid = true;
  return report(why);
}

std::shared_ptr<Capture> find_capture(const LateQueue& queue) {
  const std::lock_guard lock(captures().mutex);
  return capture_of(queue);
}

/// The calling thread's work on a graph.
class InGraph {
 public:
  explicit InGraph(std::shared_ptr<Capture> capture) : capture_(std::move(capture)) {
    if (capture_ == nullptr) return;
    capture_->enter();
    std::this_thread::yield();  // so that another thread may come
  }
  ~InGraph() {
    if (capture_ != nullptr) capture_->leave();
  }
  InGraph(const InGraph&) = delete;
  InGraph& operator=(const InGraph&) = delete;

 private:
  std::shared_ptr<Capture> capture_;
};

/// What the capture of the stream, if it is in one, gets for it.
cudaError_t require_not_captured(const LateQueue& queue, cudaError_t otherwise) {
  const std::lock_guard lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(queue);
  return capture == nullptr ? cudaSuccess : invalidate(*capture, otherwise);
}

}  // namespace

cudaError_t submit(const std::shared_ptr<LateQueue>& queue, std::function<void()> task) {
  if (queue == nullptr) return report(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = require_usable(queue->device()); status != cudaSuccess) return status;
  const InGraph in_graph(find_capture(*queue));
  queue->wait_for_room();
  const std::lock_guard lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(*queue);
  if (capture == nullptr) {
    queue->add(std::move(task));
    return cudaSuccess;
  }
  if (capture->invalid) return report(cudaErrorStreamCaptureInvalidated);
  Places& end = capture->ends[queue.get()];
  capture->nodes->all.push_back({std::move(task), end});
  end = {capture->nodes->all.size() - 1};
  return cudaSuccess;
}

cudaError_t require_not_captured(const std::shared_ptr<LateQueue>& queue) {
  return require_not_captured(*queue, cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_isolation(const std::shared_ptr<LateQueue>& queue) {
  return require_not_captured(*queue, cudaErrorStreamCaptureIsolation);
}

cudaError_t require_none_captured(int device) {
  const std::lock_guard lock(captures().mutex);
  for (const auto& capture : captures().all) {
    const auto is_there = [&](const auto& entry) { return entry.first->device() == device; };
    if (std::ranges::any_of(capture->ends, is_there))
      return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

cudaError_t require_safe() {
  const std::lock_guard lock(captures().mutex);
  for (const auto& capture : captures().all) {
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture->mode == cudaStreamCaptureModeGlobal || capture->thread == std::this_thread::get_id())
      return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

std::shared_ptr<const CapturedPlace> captured_place(const std::shared_ptr<LateQueue>& queue) {
  const InGraph in_graph(find_capture(*queue));
  const std::lock_guard lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(*queue);
  if (capture == nullptr) return nullptr;
  return std::make_shared<CapturedPlace>(CapturedPlace{capture, capture->ends[queue.get()]});
}

cudaError_t wait_for(const std::shared_ptr<LateQueue>& queue, const CapturedPlace& place) {
  const InGraph in_graph(place.capture.lock());
  const std::lock_guard lock(captures().mutex);
  const std::shared_ptr<Capture> capture = place.capture.lock();
  if (capture == nullptr) return report(cudaErrorCapturedEvent);
  const std::shared_ptr<Capture> own = capture_of(*queue);
  if (own != nullptr && own != capture) return invalidate(*own, cudaErrorStreamCaptureMerge);
  if (capture->invalid) return report(cudaErrorStreamCaptureInvalidated);
  capture->ends[queue.get()].insert(place.ends.begin(), place.ends.end());
  return cudaSuccess;
}

cudaError_t refuse_captured(const CapturedPlace& place) {
  const std::lock_guard lock(captures().mutex);
  if (const std::shared_ptr<Capture> capture = place.capture.lock())
    return invalidate(*capture, cudaErrorCapturedEvent);
  return report(cudaErrorCapturedEvent);
}

}  // namespace gpu_stand_in

using namespace gpu_stand_in;

#pragma GCC visibility push(default)
extern "C" {

bool gpu_stand_in_give_to_graph(cudaStream_t stream, void* data, void (*destroy)(void*)) {
  const std::lock_guard lock(captures().mutex);
  const std::shared_ptr<Capture> capture = capture_of(*queue_of(stream));
  if (capture == nullptr) return false;
  capture->nodes->owned.emplace_back(data, destroy);
  return true;
}

void* gpu_stand_in_enter_graph(cudaStream_t stream) {
  std::shared_ptr<Capture> capture = find_capture(*queue_of(stream));
  return capture == nullptr ? nullptr : new InGraph(std::move(capture));
}

void gpu_stand_in_leave_graph(void* entered) { delete static_cast<InGraph*>(entered); }

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  count_call("cudaStreamBeginCapture");
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  const std::lock_guard lock(captures().mutex);
  if (capture_of(*queue) != nullptr) return report(cudaErrorIllegalState);
  auto capture = std::make_shared<Capture>();
  capture->origin = queue;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->ends[queue.get()];
  captures().all.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  count_call("cudaStreamEndCapture");
  *graph = nullptr;
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  std::shared_ptr<Capture> capture;
  {
    const std::lock_guard lock(captures().mutex);
    capture = capture_of(*queue);
    if (capture == nullptr) return report(cudaErrorIllegalState);
    if (capture->origin != queue) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
    std::erase(captures().all, capture);
  }
  const Places joined = capture->nodes->up_to(capture->ends[queue.get()]);
  const bool all_are_joined = std::ranges::all_of(
      capture->ends, [&](const auto& end) { return std::ranges::includes(joined, end.second); });
  cudaError_t status = cudaSuccess;
  if (capture->invalid)
    status = cudaErrorStreamCaptureInvalidated;
  else if (!all_are_joined)
    status = cudaErrorStreamCaptureUnjoined;
  else if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id())
    status = cudaErrorStreamCaptureWrongThread;
  if (status == cudaSuccess) *graph = new CUgraph_st{capture->nodes};
  return report(status);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  count_call("cudaGraphInstantiate");
  *exec = new CUgraphExec_st{graph->nodes};
  Handles::of_this_process().add(*exec, current_device());
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  count_call("cudaGraphLaunch");
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (const cudaError_t status = require_not_captured(queue); status != cudaSuccess) return status;
  const bool in_order = std::exchange(exec->in_order, !exec->in_order);
  ++*exec->launches;
  return submit(queue, [nodes = exec->nodes, launches = exec->launches, in_order] {
    nodes->run(in_order);
    --*launches;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  count_call("cudaGraphExecDestroy");
  if (*exec->launches > 0) {
    // CUDA does not promise that it may.
    std::fputs("GPU stand-in: a graph is destroyed while it runs\n", stderr);
    std::abort();
  }
  Handles::of_this_process().remove(exec);
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
#pragma GCC visibility pop
