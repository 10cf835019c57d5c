// The GPUs of this process as members, each on a thread of its own; GPUs and communicators kept busy.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cohort/collective/communicator.h>
#include <cohort/collective/thread_communicator.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/devices.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/device.h>
#include <cohort/device/tensor.h>
#include <cohort/nccl/communicator.h>

namespace cohort::testing {

/// Runs what is written for tensors of the CPU on GPUs: a Communicator that copies the tensors of each call
/// to its member's GPU, has another communicator make the call there, and copies the results back. Takes
/// `host` along; its calls are those of a program with tensors on `device`.
[[nodiscard]] std::unique_ptr<Communicator> on_gpu(std::unique_ptr<Communicator> host, Device device);

/// The first `members` GPUs of this process.
inline std::vector<Device> first_gpus(int members) {
  std::vector<Device> devices = cuda::devices();
  devices.resize(static_cast<std::size_t>(members));
  return devices;
}

inline std::vector<std::unique_ptr<Communicator>> make_gpu_communicators(
    int members, const CommunicationOptions& options = {}) {
  const auto hosts = make_thread_communicators(members, options);
  return nccl::make_communicators(hosts, first_gpus(members));
}

inline void call_for_each(std::span<const std::unique_ptr<Communicator>> communicators,
                          const std::function<void(Communicator&)>& function) {
  std::vector<std::thread> threads;
  threads.reserve(communicators.size());
  for (const auto& communicator : communicators)
    threads.emplace_back([&function, &communicator] { function(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

/// The function's tensors are copied to the GPUs and back.
inline void for_each_gpu_member(int members, const std::function<void(Communicator&)>& function,
                                const CommunicationOptions& options = {}) {
  const std::vector<Device> devices = first_gpus(members);
  auto communicators = make_gpu_communicators(members, options);
  for (std::size_t index = 0; index < communicators.size(); ++index)
    communicators[index] = on_gpu(std::move(communicators[index]), devices[index]);
  call_for_each(communicators, function);
}

/// The function's tensors stay where they are.
inline void for_each_gpu_communicator(int members, const std::function<void(Communicator&)>& function,
                                      const CommunicationOptions& options = {}) {
  call_for_each(make_gpu_communicators(members, options), function);
}

/// The GPU computes until `busy` is false: what is called meanwhile stays in flight.
inline void keep_busy(Device gpu, std::atomic<bool>& busy) {
  const cuda::CurrentDevice current(gpu);
  const auto compute = [](void* flag) {
    while (*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  EXPECT_EQ(cudaLaunchHostFunc(cuda::compute_stream(gpu).handle(), compute, &busy), cudaSuccess);
}

/// Has more calls in flight at once than a test's steps have, so that these find events for their calls: the
/// threads that look after a call may keep its events a little longer than it takes.
inline void have_many_in_flight(Communicator& communicator) {
  const Tensor tensor = Tensor::zeros({1}, DType::kFloat32, communicator.device());
  std::atomic<bool> busy = true;
  keep_busy(communicator.device(), busy);
  for (int i = 0; i < 8; ++i) communicator.all_reduce(tensor, ReduceOp::kMax);
  busy = false;
  synchronize(communicator.device());
}

}  // namespace cohort::testing
