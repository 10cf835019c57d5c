// Memory that NCCL knows. A tensor that takes part in collectives again and again can lie in memory that NCCL
// allocates, and be registered with a communicator: then NCCL moves its bytes where they are, without buffers
// of its own, as far as its version, the GPUs and the network offer that. Results are the same. Both take
// long, so they are for what is kept, such as packed gradients.
#pragma once

#include <memory>

#include <cohort/collective/communicator.h>
#include <cohort/device/tensor.h>

namespace cohort::nccl {

/// A tensor on `device`, uninitialised, in memory of NCCL's. When the last handle goes, the thread waits
/// for what was queued on the GPU, and the memory is given back.
/// @throws Unavailable when there is no such GPU, or no NCCL; Internal with NCCL's words when memory is
/// short; Unimplemented when Cohort was built with a header of NCCL before 2.19.1.
[[nodiscard]] Tensor allocate(Shape shape, DType dtype, Device device);

/// Keeps a tensor, made by `allocate` or a part of one, registered with a communicator. Members that have
/// registered theirs, and call with them, gain by it; those of one call should all do so.
class [[nodiscard]] Registration {
 public:
  /// Meanwhile no other thread makes calls on `communicator`; those in flight are waited for.
  /// @throws InvalidArgument unless `communicator` is one of NCCL's, for the tensor's GPU; Unimplemented as
  /// `allocate`; what has ended the communicator.
  Registration(Communicator& communicator, Tensor tensor);

  /// As for the constructor: calls in flight are waited for. May come after the end of the communicator.
  ~Registration();

  Registration(Registration&&) noexcept;
  Registration& operator=(Registration&&) noexcept;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace cohort::nccl
