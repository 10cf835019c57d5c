// The Communicator that programs see: a handle on its implementation. Its Works may outlive it, since they
// co-own the implementation.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <cohort/base/fingerprint.h>

#include "collective/communicator_base.h"
#include "nccl_communicator_impl.h"
#include "types.h"

namespace cohort::nccl {

class NcclCommunicator final : public CommunicatorBase {
 public:
  explicit NcclCommunicator(std::shared_ptr<NcclCommunicatorImpl> impl)
      : CommunicatorBase(impl->control().rank(),
                         {impl->control().members().begin(), impl->control().members().end()},
                         impl->control().options()),
        impl_(std::move(impl)) {}
  ~NcclCommunicator() override { impl_->close(); }

  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  [[nodiscard]] std::string_view name() const noexcept override { return "nccl"; }
  [[nodiscard]] std::string_view group_name() const noexcept override {
    return impl_->control().group_name();
  }
  [[nodiscard]] Device device() const noexcept override { return impl_->device(); }

  [[nodiscard]] Tensor allocate(Shape shape, DType dtype) override {
    return Tensor::wrap(impl_->allocate(shape.elements() * size_of(dtype)), 0, shape, dtype);
  }

  [[nodiscard]] std::size_t largest_call_bytes(const Tensor& tensor) const noexcept override {
    const bool by_nccl = tensor.device() == impl_->device() && arithmetic_type(tensor.dtype());
    return by_nccl ? std::numeric_limits<std::size_t>::max() : Communicator::largest_call_bytes(tensor);
  }

  [[nodiscard]] std::unique_ptr<Communicator> split(std::optional<int> color, int key) override {
    std::optional<CommunicatorParts> parts = impl_->split(exchange_split(color, key, {}));
    if (!parts) return nullptr;
    return std::make_unique<NcclCommunicator>(std::make_shared<NcclCommunicatorImpl>(std::move(*parts)));
  }
  void abort(const Error& error) override { impl_->abort(error); }
  [[nodiscard]] std::optional<Error> failure() override { return impl_->failure(); }

 private:
  [[nodiscard]] bool takes(DeviceKind) const noexcept override { return true; }
  Work begin(const CollectiveCall& call) override { return impl_->start(placed(call)); }
  void execute(const CollectiveCall& call) override { impl_->run(placed(call)); }

  /// NCCL does not survive a call whose tensor is in registered memory on some members only, or elsewhere in
  /// it, so members agree on the place as well. A member's own block of the larger tensor is at a different
  /// place on each.
  [[nodiscard]] CollectiveCall placed(CollectiveCall call) const {
    std::uint64_t input = impl_->symmetric_memory().place_of(call.input);
    std::uint64_t output = impl_->symmetric_memory().place_of(call.output);
    switch (call.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kBroadcast:
      case CollectiveKind::kAllToAll: break;
      case CollectiveKind::kReduce: output = 0; break;  // the root's alone
      case CollectiveKind::kAllGather: input = input != 0 ? 1 : 0; break;
      case CollectiveKind::kReduceScatter: output = output != 0 ? 1 : 0; break;
      case CollectiveKind::kGather:  // no collectives of NCCL's
      case CollectiveKind::kScatter:
      case CollectiveKind::kSplit:
      case CollectiveKind::kBarrier:
      case CollectiveKind::kSend:
      case CollectiveKind::kReceive: return call;
    }
    if (input != 0 || output != 0)
      call.layout = Fingerprint().add(call.layout).add(input).add(output).value();
    return call;
  }

  std::shared_ptr<NcclCommunicatorImpl> impl_;
};

}  // namespace cohort::nccl
