#include <cohort/collective/communicator.h>

#include <functional>

#include <fmt/format.h>

#include <cohort/base/config.h>
#include <cohort/base/fingerprint.h>
#include <cohort/device/tensor.h>

#include "collective/call/operation_in_flight.h"
#include "collective/packing/tensor_lists.h"
#include "communicator_base.h"

namespace cohort {
namespace {

using Extent = CollectiveTraits::Extent;
using InPlace = CollectiveTraits::InPlace;
using Pattern = CollectiveTraits::Pattern;

// Every check of a caller's arguments happens here, once, before an implementation sees the call.

CollectiveCall make_call(CollectiveKind kind, const CallOptions& options) {
  if (options.timeout_seconds && !(*options.timeout_seconds >= 0)) {  // also for NaN
    throw InvalidArgument("{}: timeout_seconds is {}; give a positive number, or 0 to wait for ever",
                          to_string(kind), *options.timeout_seconds);
  }
  CollectiveCall call;
  call.kind = kind;
  call.layout = options.layout;
  call.priority = options.priority;
  call.timeout_seconds = options.timeout_seconds;
  return call;
}

CollectiveCall make_call(CollectiveKind kind, const Tensor& input, const Tensor& output, std::size_t elements,
                         const CallOptions& options) {
  CollectiveCall call = make_call(kind, options);
  call.dtype = input.dtype();
  call.elements = elements;
  call.input = input.data();
  call.output = output.data();
  call.buffers = {&input.buffer(), &output.buffer()};
  call.device = input.device();
  return call;
}

void require_member(CollectiveKind kind, int member, int size, const char* role) {
  if (member >= 0 && member < size) return;
  throw InvalidArgument("{}: {} {} is not a member; members are 0 to {}", to_string(kind), role, member,
                        size - 1);
}

void require_alike(CollectiveKind kind, const Tensor& input, const Tensor& output) {
  if (input.dtype() != output.dtype()) {
    throw InvalidArgument("{}: input is {} but output is {}; dtypes must agree", to_string(kind),
                          describe(input), describe(output));
  }
  const Device from = input.device();
  const Device to = output.device();
  if (from == to || (from.kind() == DeviceKind::kCpu && to.kind() == DeviceKind::kCpu)) return;
  throw InvalidArgument("{}: input is on {} but output is on {}; both must be on this member's device",
                        to_string(kind), to_string(from), to_string(to));
}

void require_elements(CollectiveKind kind, const Tensor& tensor, const char* role, std::size_t wanted,
                      const char* why) {
  if (tensor.elements() == wanted) return;
  throw InvalidArgument("{}: {} {} has {} elements, needs {} ({})", to_string(kind), role, describe(tensor),
                        tensor.elements(), wanted, why);
}

/// Either disjoint, or `inner` starts exactly `offset` bytes into `outer`.
void require_aliasing(CollectiveKind kind, const Tensor& inner, const Tensor& outer, std::size_t offset) {
  if (inner.bytes() == 0 || outer.bytes() == 0) return;
  const std::less<const std::byte*> before;
  const std::byte* inner_end = inner.data() + inner.bytes();
  const std::byte* outer_end = outer.data() + outer.bytes();
  const bool disjoint = !before(inner.data(), outer_end) || !before(outer.data(), inner_end);
  if (disjoint || inner.data() == outer.data() + offset) return;
  throw InvalidArgument(
      "{}: input and output overlap; pass disjoint tensors, or the block that is this member's own",
      to_string(kind));
}

void require_disjoint(CollectiveKind kind, const Tensor& input, const Tensor& output) {
  require_aliasing(kind, input, output, output.bytes());
}

std::size_t block_elements(CollectiveKind kind, const Tensor& whole, const char* role, int size) {
  const auto members = static_cast<std::size_t>(size);
  if (whole.elements() % members == 0) return whole.elements() / members;
  throw InvalidArgument("{}: the {} elements of {} {} cannot be divided among {} members; pad it",
                        to_string(kind), whole.elements(), role, describe(whole), size);
}

/// Whether both are the same elements.
bool are_alike(const Tensor& input, const Tensor& output) noexcept {
  return &input == &output || (input.data() == output.data() && input.dtype() == output.dtype() &&
                               input.elements() == output.elements() && input.buffer() == output.buffer());
}

/// Input and output of one call hold what the table says, and overlap only as it allows.
template <CollectiveKind kKind>
void require_matching(const Tensor& input, const Tensor& output, int rank, int size) {
  constexpr CollectiveTraits kTraits = traits_of(kKind);
  const auto members = static_cast<std::size_t>(size);
  require_alike(kKind, input, output);
  if constexpr (kTraits.input == kTraits.output)
    require_elements(kKind, output, "output", input.elements(), "as many as the input");
  else if constexpr (kTraits.output == Extent::kAllBlocks)
    require_elements(kKind, output, "output", input.elements() * members,
                     "the input's elements times the number of members");
  else
    require_elements(kKind, input, "input", output.elements() * members,
                     "the output's elements times the number of members");

  if constexpr (kTraits.in_place == InPlace::kWhole)
    require_aliasing(kKind, input, output, 0);
  else if constexpr (kTraits.in_place == InPlace::kNever)
    require_disjoint(kKind, input, output);
  else if constexpr (kTraits.output == Extent::kAllBlocks)
    require_aliasing(kKind, input, output, static_cast<std::size_t>(rank) * input.bytes());
  else
    require_aliasing(kKind, output, input, static_cast<std::size_t>(rank) * output.bytes());
}

/// Elements of the call: of one member's block.
template <CollectiveKind kKind>
std::size_t elements_of(const Tensor& input, const Tensor& output, int size) {
  constexpr CollectiveTraits kTraits = traits_of(kKind);
  if constexpr (kTraits.input == Extent::kOneBlock) return input.elements();
  if constexpr (kTraits.output == Extent::kOneBlock) return output.elements();
  return block_elements(kKind, input, "input", size);
}

/// What a kind may need beside tensors.
struct Arguments {
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
};

/// A collective of blocks of one size, checked by what the table says about its kind.
template <CollectiveKind kKind>
CollectiveCall checked_call(const Communicator& communicator, const Tensor& input, const Tensor& output,
                            const Arguments& arguments, const CallOptions& options) {
  constexpr CollectiveTraits kTraits = traits_of(kKind);
  constexpr bool kAlwaysInPlace = kTraits.in_place == InPlace::kAlways;
  const int rank = communicator.rank();
  const int size = communicator.size();
  if constexpr (kTraits.reduces) require_legal(arguments.op, input.dtype());
  if constexpr (kTraits.has_root()) require_member(kKind, arguments.root, size, "root");
  // Only the root needs both tensors; what others pass for the second one is not looked at.
  const bool is_root = !kTraits.has_root() || rank == arguments.root;
  const bool has_input = kAlwaysInPlace || is_root || kTraits.pattern != Pattern::kFromRoot;
  const bool has_output = kAlwaysInPlace || is_root || kTraits.pattern != Pattern::kToRoot;
  // Where one tensor is both, as it most often is in an all-reduce, there is nothing to compare.
  const bool is_one_tensor =
      kAlwaysInPlace || (kTraits.in_place == InPlace::kWhole && are_alike(input, output));
  if (!is_one_tensor && has_input && has_output) require_matching<kKind>(input, output, rank, size);

  CollectiveCall call =
      make_call(kKind, has_input ? input : output, output, elements_of<kKind>(input, output, size), options);
  if constexpr (kTraits.reduces) call.op = arguments.op;
  if constexpr (kTraits.has_root()) call.root = arguments.root;
  if (!has_input) call.input = nullptr;
  if (!has_output) call.output = nullptr;
  return call;
}

CollectiveCall all_gather_uneven_call(const Tensor& input, const Tensor& output,
                                      std::span<const std::size_t> counts, int rank, int size,
                                      const CallOptions& options) {
  constexpr auto kKind = CollectiveKind::kAllGather;
  if (counts.size() != static_cast<std::size_t>(size)) {
    throw InvalidArgument("{}: {} counts for {} members; give one per member", to_string(kKind),
                          counts.size(), size);
  }
  require_alike(kKind, input, output);
  std::size_t total = 0;
  std::size_t before = 0;
  for (std::size_t member = 0; member < counts.size(); ++member) {
    if (member == static_cast<std::size_t>(rank)) before = total;
    total += counts[member];
  }
  require_elements(kKind, input, "input", counts[static_cast<std::size_t>(rank)], "this member's count");
  require_elements(kKind, output, "output", total, "the sum of all counts");
  require_aliasing(kKind, input, output, before * size_of(input.dtype()));
  CollectiveCall call = make_call(kKind, input, output, input.elements(), options);
  call.counts = counts;
  return call;
}

CollectiveCall message_call(CollectiveKind kind, const Tensor& tensor, int peer, int tag, int rank, int size,
                            const CallOptions& options) {
  require_member(kind, peer, size, "peer");
  if (peer == rank)
    throw InvalidArgument("{}: member {} cannot exchange messages with itself", to_string(kind), rank);
  constexpr int kLargestTag = 32767;  // what every MPI allows
  if (tag < 0 || tag > kLargestTag) {
    throw InvalidArgument("{}: tag {} is out of range; tags are 0 to {}", to_string(kind), tag, kLargestTag);
  }
  CollectiveCall call = make_call(kind, tensor, tensor, tensor.elements(), options);
  call.root = peer;
  call.tag = tag;
  return call;
}

}  // namespace

Communicator::Communicator(int rank, std::vector<MemberInfo> members, const CommunicationOptions& options)
    : rank_(rank),
      members_(std::move(members)),
      options_(options),
      calls_are_plain_(options.implementation == CommunicationImplementation::kAuto &&
                       options.hooks == nullptr) {
  if (config().check_buffers()) {
    checks_ = std::make_unique<BufferChecks>(rank_, size(), members_[static_cast<std::size_t>(rank_)]);
  }
}

Communicator::~Communicator() = default;

Tensor Communicator::allocate(Shape shape, DType dtype) {
  return Tensor::uninitialized(shape, dtype, device());
}

std::size_t Communicator::largest_call_bytes(const Tensor& /*tensor*/) const noexcept {
  return kLargestCallBytes;
}

const CommunicationCost& Communicator::cost() {
  if (!cost_) cost_ = is_cpu(device()) || size() == 1 ? CommunicationCost{} : measured_cost(*this);
  return *cost_;
}

CollectiveCall Communicator::with_scope_options(CollectiveCall call) const {
  if (!call.timeout_seconds) call.timeout_seconds = scope_timeout_;
  if (is_message(call.kind)) return call;
  if (call.kind == CollectiveKind::kAllReduce) call.implementation = options_.implementation;
  call.purpose = purpose_;
  if (purpose_ != nullptr || call.implementation != CommunicationImplementation::kAuto) {
    const std::uint64_t purpose = purpose_ == nullptr ? 0 : purpose_->fingerprint();
    const auto implementation = static_cast<std::uint64_t>(call.implementation);
    call.layout = Fingerprint().add(call.layout).add(purpose).add(implementation).value();
  }
  return call;
}

void Communicator::require_place(const CollectiveCall& call) const {
  if (takes(call.device.kind())) return;
  throw InvalidArgument(
      "{}: this communicator ({}) moves CPU tensors; copy them with to(cpu), or make a communicator of the "
      "members' GPUs",
      describe(call), name());
}

void Communicator::run(const CollectiveCall& call) {
  if (!is_cpu(call.device)) require_place(call);
  if (checks_ == nullptr && calls_are_plain_)
    execute(call);
  else if (options_.hooks == nullptr)
    run_effective(call);
  else
    run_with_hooks(call);
}

void Communicator::run_effective(const CollectiveCall& call) {
  if (checks_ == nullptr)
    execute(with_scope_options(call));
  else
    start_effective(call).wait();
}

void Communicator::run_with_hooks(const CollectiveCall& call) {
  const std::shared_ptr<HookedCall> hooked = hook(call, false);
  try {
    run_effective(call);
  } catch (const Error& error) {
    hooked->end(&error);
    throw;
  }
  hooked->end(nullptr);
}

std::shared_ptr<HookedCall> Communicator::hook(const CollectiveCall& call, bool is_async) {
  if (hooked_ == nullptr)
    hooked_ = std::make_shared<HookedCalls>(*options_.hooks, group_name(), rank_, size());
  return std::make_shared<HookedCall>(hooked_, call, is_async);
}

Work Communicator::start(const CollectiveCall& call) {
  if (!is_cpu(call.device)) require_place(call);
  if (options_.hooks == nullptr) return start_effective(call);
  const std::shared_ptr<HookedCall> hooked = hook(call, true);
  CollectiveCall told = call;
  told.hooked = hooked.get();
  try {
    return start_effective(told);
  } catch (const Error& error) {
    hooked->end(&error);
    throw;
  }
}

Work Communicator::start_effective(const CollectiveCall& call) {
  const CollectiveCall effective = calls_are_plain_ ? call : with_scope_options(call);
  // What lies on a GPU cannot be looked at from here.
  if (checks_ == nullptr || !is_cpu(call.device)) return begin(effective);
  return checks_->start(effective, [this](const CollectiveCall& copy) { return begin(copy); });
}

void Communicator::all_reduce(const Tensor& input, const Tensor& output, ReduceOp op,
                              const CallOptions& options) {
  run(checked_call<CollectiveKind::kAllReduce>(*this, input, output, {.op = op}, options));
}
Work Communicator::all_reduce_async(const Tensor& input, const Tensor& output, ReduceOp op,
                                    const CallOptions& options) {
  return start(checked_call<CollectiveKind::kAllReduce>(*this, input, output, {.op = op}, options));
}

void Communicator::reduce(const Tensor& input, const Tensor& output, ReduceOp op, int root,
                          const CallOptions& options) {
  run(checked_call<CollectiveKind::kReduce>(*this, input, output, {.op = op, .root = root}, options));
}
Work Communicator::reduce_async(const Tensor& input, const Tensor& output, ReduceOp op, int root,
                                const CallOptions& options) {
  return start(
      checked_call<CollectiveKind::kReduce>(*this, input, output, {.op = op, .root = root}, options));
}

void Communicator::broadcast(const Tensor& tensor, int root, const CallOptions& options) {
  run(checked_call<CollectiveKind::kBroadcast>(*this, tensor, tensor, {.root = root}, options));
}
Work Communicator::broadcast_async(const Tensor& tensor, int root, const CallOptions& options) {
  return start(checked_call<CollectiveKind::kBroadcast>(*this, tensor, tensor, {.root = root}, options));
}

void Communicator::all_gather(const Tensor& input, const Tensor& output, const CallOptions& options) {
  run(checked_call<CollectiveKind::kAllGather>(*this, input, output, {}, options));
}
Work Communicator::all_gather_async(const Tensor& input, const Tensor& output, const CallOptions& options) {
  return start(checked_call<CollectiveKind::kAllGather>(*this, input, output, {}, options));
}

void Communicator::all_gather_uneven(const Tensor& input, const Tensor& output,
                                     std::span<const std::size_t> counts, const CallOptions& options) {
  run(all_gather_uneven_call(input, output, counts, rank(), size(), options));
}
Work Communicator::all_gather_uneven_async(const Tensor& input, const Tensor& output,
                                           std::span<const std::size_t> counts, const CallOptions& options) {
  return start(all_gather_uneven_call(input, output, counts, rank(), size(), options));
}

void Communicator::reduce_scatter(const Tensor& input, const Tensor& output, ReduceOp op,
                                  const CallOptions& options) {
  run(checked_call<CollectiveKind::kReduceScatter>(*this, input, output, {.op = op}, options));
}
Work Communicator::reduce_scatter_async(const Tensor& input, const Tensor& output, ReduceOp op,
                                        const CallOptions& options) {
  return start(checked_call<CollectiveKind::kReduceScatter>(*this, input, output, {.op = op}, options));
}

void Communicator::all_to_all(const Tensor& input, const Tensor& output, const CallOptions& options) {
  run(checked_call<CollectiveKind::kAllToAll>(*this, input, output, {}, options));
}
Work Communicator::all_to_all_async(const Tensor& input, const Tensor& output, const CallOptions& options) {
  return start(checked_call<CollectiveKind::kAllToAll>(*this, input, output, {}, options));
}

void Communicator::gather(const Tensor& input, const Tensor& output, int root, const CallOptions& options) {
  run(checked_call<CollectiveKind::kGather>(*this, input, output, {.root = root}, options));
}
Work Communicator::gather_async(const Tensor& input, const Tensor& output, int root,
                                const CallOptions& options) {
  return start(checked_call<CollectiveKind::kGather>(*this, input, output, {.root = root}, options));
}

void Communicator::scatter(const Tensor& input, const Tensor& output, int root, const CallOptions& options) {
  run(checked_call<CollectiveKind::kScatter>(*this, input, output, {.root = root}, options));
}
Work Communicator::scatter_async(const Tensor& input, const Tensor& output, int root,
                                 const CallOptions& options) {
  return start(checked_call<CollectiveKind::kScatter>(*this, input, output, {.root = root}, options));
}

void Communicator::barrier(const CallOptions& options) { run(make_call(CollectiveKind::kBarrier, options)); }
Work Communicator::barrier_async(const CallOptions& options) {
  return start(make_call(CollectiveKind::kBarrier, options));
}

void Communicator::send(const Tensor& tensor, int peer, int tag, std::optional<double> timeout_seconds) {
  run(message_call(CollectiveKind::kSend, tensor, peer, tag, rank(), size(),
                   {.timeout_seconds = timeout_seconds}));
}
Work Communicator::send_async(const Tensor& tensor, int peer, int tag,
                              std::optional<double> timeout_seconds) {
  return start(message_call(CollectiveKind::kSend, tensor, peer, tag, rank(), size(),
                            {.timeout_seconds = timeout_seconds}));
}

void Communicator::receive(const Tensor& tensor, int peer, int tag, std::optional<double> timeout_seconds) {
  run(message_call(CollectiveKind::kReceive, tensor, peer, tag, rank(), size(),
                   {.timeout_seconds = timeout_seconds}));
}
Work Communicator::receive_async(const Tensor& tensor, int peer, int tag,
                                 std::optional<double> timeout_seconds) {
  return start(message_call(CollectiveKind::kReceive, tensor, peer, tag, rank(), size(),
                            {.timeout_seconds = timeout_seconds}));
}

namespace {

/// The call by which members agree on one whose data is moved by something else.
CollectiveCall agreement_barrier(const CollectiveCall& call) {
  const CallSignature exact = signature(call, 0);
  CollectiveCall barrier;
  barrier.kind = CollectiveKind::kBarrier;
  barrier.layout =
      Fingerprint()
          .add(exact.elements)
          .add(exact.layout)
          .add(static_cast<std::uint64_t>(exact.kind) << 32 | static_cast<std::uint64_t>(exact.dtype) << 16 |
               exact.op)
          .add(static_cast<std::uint64_t>(exact.captured) << 40 |
               static_cast<std::uint64_t>(exact.device) << 32 | static_cast<std::uint32_t>(exact.root))
          .value();
  barrier.priority = call.priority;
  barrier.timeout_seconds = call.timeout_seconds;
  barrier.stands_for = &call;
  return barrier;
}

}  // namespace

void CommunicatorBase::agree(Communicator& communicator, const CollectiveCall& call) {
  communicator.execute(agreement_barrier(call));
}

std::vector<SplitMember> CommunicatorBase::exchange_split(std::optional<int> color, int key,
                                                          const SplitContribution& contribution) {
  const SplitExchange exchange(size(), color, key, contribution);
  run_exchange(exchange);
  return exchange.members();
}

}  // namespace cohort
