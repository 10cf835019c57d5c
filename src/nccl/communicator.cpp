#include <cohort/nccl/communicator.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/nccl/library.h>

#include "base/quiet_thread.h"
#include "capability_check.h"
#include "collective/communicator_base.h"
#include "collective/device_communicators.h"
#include "cuda/capture.h"
#include "launch.h"
#include "nccl_communicator_impl.h"

namespace cohort::nccl {
namespace {

/// The Communicator that programs see: a handle on its implementation. Its Works may outlive it, since they
/// co-own the implementation.
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

/// Every member's `value`, by rank.
template <class T>
std::vector<T> gather_values(Communicator& host, const T& value) {
  constexpr std::int64_t kBytes = sizeof(T);
  const Tensor input = Tensor::uninitialized({kBytes}, DType::kUInt8);
  const Tensor output = Tensor::uninitialized({host.size(), kBytes}, DType::kUInt8);
  std::memcpy(input.data(), &value, sizeof value);
  host.all_gather(input, output.reshape({-1}));
  std::vector<T> values(static_cast<std::size_t>(host.size()));
  std::memcpy(values.data(), output.data(), output.bytes());
  return values;
}

/// Connects one member with the group.
class Connection {
 public:
  Connection(Communicator& host, Device device) : host_(host), device_(device) {}

  std::unique_ptr<Communicator> make() {
    const std::vector<Capability> capabilities = gather_values(host_, capability_of(host_.rank(), device_));
    if (const auto reason = why_unsupported(capabilities, host_.members())) throw Unavailable("{}", *reason);
    // The attempt has its own communicator on the host, so that the caller's outlives it.
    CommunicatorParts parts{.device = device_,
                            .control = through_host(host_.split(0)),
                            .messages = through_host(host_.split(0)),
                            .comm = std::make_unique<Comm>(describe(host_.rank(), own_info()), device_)};
    std::array<char, 512> failure{};
    try {
      // NCCL's kernels use the memory of their peers in this process where it lies.
      for (const Device peer : peers_in_process(capabilities, host_.rank())) cuda::open_memory(device_, peer);
      connect(*parts.comm, capabilities.front().group, *parts.control);
    } catch (const std::exception& error) {
      const std::string text = blame(*parts.control, error);
      std::copy_n(text.begin(), std::min(text.size(), failure.size() - 1), failure.begin());
    }
    require_all_connected(gather_values(host_, failure));
    return std::make_unique<NcclCommunicator>(std::make_shared<NcclCommunicatorImpl>(std::move(parts)));
  }

 private:
  [[nodiscard]] std::unique_ptr<Communicator> through_host(std::unique_ptr<Communicator> host) const {
    std::vector<std::unique_ptr<Communicator>> hosts;
    hosts.push_back(std::move(host));
    return std::move(make_staged_communicators(std::move(hosts), {&device_, 1}).front());
  }

  [[nodiscard]] const MemberInfo& own_info() const {
    return host_.members()[static_cast<std::size_t>(host_.rank())];
  }

  void connect(Comm& comm, const ncclUniqueId& group, Communicator& control) const {
    const auto look = [&control] {
      if (const std::optional<Error> error = control.failure()) throw_error(*error);
    };
    comm.meet(host_.size(), group, host_.rank(), host_.options().deadline(), look);
  }

  /// The failure of all, which is this member's unless another one failed first.
  [[nodiscard]] std::string blame(Communicator& control, const std::exception& error) const {
    const Unavailable own("{}: {}", describe(host_.rank(), own_info()), error.what());
    control.abort(own);
    return control.failure().value_or(own).what();
  }

  static void require_all_connected(const std::vector<std::array<char, 512>>& failures) {
    for (const std::array<char, 512>& failure : failures) {
      if (failure.front() != '\0') throw Unavailable("NCCL did not connect the members: {}", failure.data());
    }
  }

  Communicator& host_;
  Device device_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_communicators(
    std::span<const std::unique_ptr<Communicator>> hosts, std::span<const Device> devices) {
  if (hosts.empty() || hosts.size() != devices.size()) {
    throw InvalidArgument("{} communicators for {} GPUs; give each GPU a communicator of its own",
                          hosts.size(), devices.size());
  }
  if (hosts.front()->options().reproducible) {
    throw Unavailable("reproducible = true was asked for, and NCCL keeps no order of summation");
  }
  std::vector<std::unique_ptr<Communicator>> communicators(hosts.size());
  std::vector<std::exception_ptr> errors(hosts.size());
  const auto connect = [&](std::size_t index) {
    try {
      communicators[index] = Connection(*hosts[index], devices[index]).make();
    } catch (...) {
      errors[index] = std::current_exception();
    }
  };
  // The members meet, so each needs a thread.
  std::vector<std::jthread> threads;
  for (std::size_t index = 1; index < hosts.size(); ++index)
    threads.push_back(start_quiet_thread([&connect, index] { connect(index); }));
  connect(0);
  threads.clear();  // joins them
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
  return communicators;
}

namespace {

/// What makes NCCL the collectives of GPUs in a program that is linked with it.
class NcclCollectives final : public DeviceCollectives {
 public:
  [[nodiscard]] std::string name() const override { return fmt::format("NCCL {}", library().version); }

  [[nodiscard]] std::string why_not(std::span<const Device> /*devices*/) const override {
    try {
      static_cast<void>(library());
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  [[nodiscard]] std::vector<std::unique_ptr<Communicator>> connect(
      std::vector<std::unique_ptr<Communicator>>& hosts, std::span<const Device> devices) override {
    std::vector<std::unique_ptr<Communicator>> communicators = make_communicators(hosts, devices);
    hosts.clear();  // each has one of its own
    return communicators;
  }
};

}  // namespace
}  // namespace cohort::nccl

extern "C" cohort::DeviceCollectives* cohort_device_collectives() noexcept {
  static cohort::nccl::NcclCollectives collectives;
  return &collectives;
}
