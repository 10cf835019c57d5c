#include "on_gpus.h"

#include <functional>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>

namespace cohort::testing {
namespace {

/// The elements of a call's tensor, on a GPU.
class Copy {
 public:
  Copy(Device device, std::size_t bytes) : device_(device), bytes_(bytes) {
    const cuda::CurrentDevice current(device);
    EXPECT_EQ(cudaMallocAsync(&data_, bytes + 1, cuda::compute_stream(device).handle()), cudaSuccess);
  }
  ~Copy() {
    const cuda::CurrentDevice current(device_);
    EXPECT_EQ(cudaFreeAsync(data_, cuda::compute_stream(device_).handle()), cudaSuccess);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

  /// Both on the compute stream, as a program's own work.
  void take(const std::byte* from) const { move(data_, from); }
  void give(std::byte* to) const {
    move(to, data_);
    cuda::compute_stream(device_).synchronize();
  }

 private:
  void move(void* to, const void* from) const {
    const cuda::CurrentDevice current(device_);
    EXPECT_EQ(cudaMemcpyAsync(to, from, bytes_, cudaMemcpyDefault, cuda::compute_stream(device_).handle()),
              cudaSuccess);
  }

  Device device_;
  std::size_t bytes_;
  void* data_ = nullptr;
};

class OnGpu final : public Communicator {
 public:
  OnGpu(std::unique_ptr<Communicator> seat, Device device)
      : Communicator(seat->rank(), {seat->members().begin(), seat->members().end()}, seat->options()),
        seat_(std::move(seat)),
        device_(device) {}

  [[nodiscard]] std::string_view name() const noexcept override { return seat_->name(); }
  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override {
    std::unique_ptr<Communicator> group = seat_->split(color, key);
    return group == nullptr ? nullptr : on_gpu(std::move(group), device_);
  }
  void abort(const Error& error) override { seat_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return seat_->failure(); }

 private:
  /// A call on copies; either may hold both tensors where the call is in place.
  struct Tensors {
    CollectiveCall call;
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::shared_ptr<const Copy> copied_input;
    std::shared_ptr<const Copy> copied_output;

    void give_back() const {
      if (copied_output != nullptr)
        copied_output->give(output);
      else if (output != nullptr && copied_input != nullptr)
        copied_input->give(input);
    }
  };
  class GivesBack;

  std::byte* copy(std::shared_ptr<const Copy>& made, const std::byte* from, std::size_t bytes) const {
    made = std::make_shared<Copy>(device_, bytes);
    made->take(from);
    return made->data();
  }

  [[nodiscard]] Tensors to_gpu(const CollectiveCall& call) const {
    Tensors tensors{call, const_cast<std::byte*>(call.input), call.output, nullptr, nullptr};
    if (call.kind == CollectiveKind::kBarrier) return tensors;
    tensors.call.device = DeviceKind::kCuda;
    const std::size_t input = input_bytes(call, rank(), size());
    const std::size_t output = output_bytes(call, rank(), size());
    const auto within = [](const std::byte* inner, const std::byte* outer, std::size_t bytes) {
      return inner != nullptr && outer != nullptr && inner >= outer && inner < outer + bytes;
    };
    // In place, the smaller is a part of the larger.
    if (output >= input && within(call.input, call.output, output)) {
      tensors.call.output = copy(tensors.copied_output, call.output, output);
      tensors.call.input = tensors.call.output + (call.input - call.output);
      return tensors;
    }
    if (call.input != nullptr) tensors.call.input = copy(tensors.copied_input, call.input, input);
    if (within(call.output, call.input, input))
      tensors.call.output = tensors.copied_input->data() + (call.output - call.input);
    else if (call.output != nullptr)
      tensors.call.output = copy(tensors.copied_output, call.output, output);
    return tensors;
  }

  Work begin(const CollectiveCall& call) override;
  void carry_out(const CollectiveCall& call) override {
    const Tensors tensors = to_gpu(call);
    seat_->run_checked(tensors.call);
    tensors.give_back();
  }

  std::unique_ptr<Communicator> seat_;
  Device device_;
};

class OnGpu::GivesBack final : public Work::State {
 public:
  GivesBack(Work work, Tensors tensors, const CollectiveCall& call)
      : work_(std::move(work)), tensors_(std::move(tensors)), call_(call) {}

  void wait() override {
    work_.wait();
    tensors_.give_back();
  }
  [[nodiscard]] bool done() noexcept override {
    if (!work_.done()) return false;
    try {
      wait();  // who asks may look at the result
    } catch (const Error&) {
      return true;
    }
    return true;
  }

 private:
  Work work_;
  Tensors tensors_;
  OwnedCall call_;
};

Work OnGpu::begin(const CollectiveCall& call) {
  Tensors tensors = to_gpu(call);
  Work work = seat_->start_checked(tensors.call);
  return Work(std::make_shared<GivesBack>(std::move(work), std::move(tensors), call));
}

}  // namespace

std::unique_ptr<Communicator> on_gpu(std::unique_ptr<Communicator> seat, Device device) {
  return std::make_unique<OnGpu>(std::move(seat), device);
}

}  // namespace cohort::testing
