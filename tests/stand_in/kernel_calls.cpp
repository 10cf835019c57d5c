// Kernels on the stand-in: what a kernel does is done on the host, by the same body that its threads
// run on a GPU. The functions with two underscores are what the CUDA compiler's code calls to make
// kernels known; theirs is the only interface here that CUDA does not document.
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cuda/kernels.h"
#include "program_kernels.h"
#include "stand_in.h"

namespace gpu_stand_in {
namespace {

thread_local int running_on = 0;  ///< the GPU of the kernel that this thread runs

using namespace cohort::cuda;

// What a body uses.
std::vector<const void*> places(const Fill& body) { return {body.data}; }
std::vector<const void*> places(const Cast& body) { return {body.from, body.to}; }
std::vector<const void*> places(const Combine& body) { return {body.target, body.value}; }
std::vector<const void*> places(const CombineRows& body) { return {body.target, body.indices, body.values}; }
std::vector<const void*> places(const Reduce& body) {
  std::vector<const void*> all(body.inputs, body.inputs + body.count);
  all.push_back(body.output);
  return all;
}
template <class Rule>
std::vector<const void*> places(const Update<Rule>& body) {
  std::vector<const void*> all{body.variable, body.gradient};
  all.insert(all.end(), std::begin(body.slots), std::begin(body.slots) + Rule::kSlots);
  if (body.master != nullptr) all.push_back(body.master);
  if (body.average != nullptr) all.push_back(body.average);
  return all;
}
std::vector<const void*> places(const CopyEach& body) {
  std::vector<const void*> all;
  std::size_t begin = 0;
  for (const CopyEach::Piece& piece : std::span(body.pieces, body.count)) {
    if (piece.end > begin) all.insert(all.end(), {piece.from, piece.to});
    begin = piece.end;
  }
  return all;
}

template <class Body>
std::function<void()> prepared(const void* argument) {
  static_assert(sizeof(Body) <= 4096, "what CUDA passes to a kernel");
  return [body = *static_cast<const Body*>(argument)] {
    for (const void* const place : places(body)) gpu_stand_in_touch(running_on, place);
    if (require_usable(running_on) == cudaSuccess) body.run(0, 1);
  };
}

HostKernel host_kernel_of(const std::string& kernel) {
#define GPU_STAND_IN_BODY(Body) {"cohort_kernel_" #Body, prepared<cohort::cuda::Body>},
  static const std::map<std::string, HostKernel> all{COHORT_CUDA_BODIES(GPU_STAND_IN_BODY)};
#undef GPU_STAND_IN_BODY
  const auto found = all.find(kernel);
  if (found != all.end()) return found->second;
  return gpu_stand_in_kernel_of_program == nullptr ? nullptr : gpu_stand_in_kernel_of_program(kernel.c_str());
}

/// By the address that stands for the kernel on the host. Filled before main.
std::map<const void*, HostKernel>& kernels() {
  static auto& instance = *new std::map<const void*, HostKernel>;
  return instance;
}

/// What stands between <<< and >>>, from there to the launch.
struct Configuration {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
thread_local Configuration pushed;

cudaError_t launch(const void* function, dim3 blocks, dim3 threads, void** arguments, cudaStream_t stream) {
  count_call("cudaLaunchKernel");
  const auto kernel = kernels().find(function);
  if (kernel == kernels().end() || kernel->second == nullptr) return report(cudaErrorInvalidDeviceFunction);
  if (blocks.x == 0 || threads.x == 0 || threads.x > 1024) return report(cudaErrorInvalidConfiguration);
  const std::shared_ptr<LateQueue> queue = queue_of(stream);
  if (queue->device() != current_device()) return report(cudaErrorInvalidResourceHandle);
  return submit(queue, [device = queue->device(), run = kernel->second(arguments[0])] {
    running_on = device;
    run();
  });
}

}  // namespace
}  // namespace gpu_stand_in

// What visit_dtype would throw: it is not called here.
void cohort::detail::throw_unknown_dtype(DType) { std::abort(); }

using namespace gpu_stand_in;

#pragma GCC visibility push(default)
extern "C" {

// What compiled kernels call by these names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }

void __cudaRegisterFunction(void**, const char* host_function, char*, const char* name, int, void*, void*,
                            void*, void*, int*) {
  kernels()[host_function] = host_kernel_of(name);
}

unsigned __cudaPushCallConfiguration(dim3 blocks, dim3 threads, std::size_t shared_bytes, void* stream) {
  pushed = {blocks, threads, shared_bytes, static_cast<cudaStream_t>(stream)};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* blocks, dim3* threads, std::size_t* shared_bytes, void* stream) {
  *blocks = pushed.blocks;
  *threads = pushed.threads;
  *shared_bytes = pushed.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = pushed.stream;
  return cudaSuccess;
}
// A kernel's handle is the address that stands for it.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 blocks, dim3 threads, void** arguments, std::size_t,
                               cudaStream_t stream) {
  return launch(kernel, blocks, threads, arguments, stream);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

cudaError_t cudaLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** arguments, std::size_t,
                             cudaStream_t stream) {
  return launch(function, blocks, threads, arguments, stream);
}

}  // extern "C"
#pragma GCC visibility pop
