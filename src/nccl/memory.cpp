#include <cohort/nccl/memory.h>

#include <algorithm>

#include <cohort/base/error.h>
#include <cohort/cuda/current_device.h>
#include <cohort/cuda/stream.h>
#include <cohort/device/device_runtime.h>

#include "calls.h"
#include "nccl_communicator.h"

namespace cohort::nccl {
namespace {

Member& member_for(Communicator& communicator, const Tensor& tensor) {
  auto* const own = dynamic_cast<NcclCommunicator*>(&communicator);
  if (own == nullptr) {
    throw InvalidArgument("{} cannot be registered with a communicator of kind {}, only with one of NCCL's",
                          describe(tensor), communicator.name());
  }
  if (tensor.device() != own->member()->device()) {
    throw InvalidArgument("{} cannot be registered: this member of the communicator has {}", describe(tensor),
                          to_string(own->member()->device()));
  }
  return *own->member();
}

}  // namespace

Tensor allocate(Shape shape, DType dtype, Device device) {
  if (is_cpu(device))
    throw InvalidArgument("nccl::allocate on {}: NCCL's memory is that of GPUs", to_string(device));
  require_exists(device);
  const std::size_t bytes = shape.elements() * size_of(dtype);
  const cuda::CurrentDevice current(device);
  std::shared_ptr<void> memory(calls::mem_alloc(std::max<std::size_t>(bytes, 1)), [device](void* block) {
    // Its work is queued there or ordered with it, and this memory goes at once, not in the stream's order.
    cuda::compute_stream(device).drain();
    const cuda::CurrentDevice own(device);
    calls::mem_free(block);
  });
  auto* const data = static_cast<std::byte*>(memory.get());
  return Tensor::wrap(std::make_shared<const Buffer>(data, bytes, device, std::move(memory)), 0, shape,
                      dtype);
}

struct Registration::State {
  State(Communicator& communicator, Tensor registered)
      : tensor(std::move(registered)),
        member(member_for(communicator, tensor).weak_from_this()),
        handle(member.lock()->register_memory(tensor.data(), tensor.bytes())) {}
  ~State() {
    // With the communicator its registrations have gone.
    if (const std::shared_ptr<Member> still = member.lock()) still->deregister(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Tensor tensor;
  std::weak_ptr<Member> member;
  void* handle;
};

Registration::Registration(Communicator& communicator, Tensor tensor)
    : state_(std::make_unique<const State>(communicator, std::move(tensor))) {}

Registration::~Registration() = default;
Registration::Registration(Registration&&) noexcept = default;
Registration& Registration::operator=(Registration&&) noexcept = default;

}  // namespace cohort::nccl
