#include <cohort/collective/communicator.h>

#include <functional>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>

namespace cohort {
namespace {

// Every check of a caller's arguments happens here, once, before an implementation sees the call.

CollectiveCall make_call(CollectiveKind kind, const Tensor& input, const Tensor& output,
                         std::size_t elements) {
  CollectiveCall call;
  call.kind = kind;
  call.dtype = input.dtype();
  call.elements = elements;
  call.input = input.data();
  call.output = output.data();
  call.buffers = {&input.buffer(), &output.buffer()};
  return call;
}

void require_member(CollectiveKind kind, int member, int size, const char* role) {
  if (member >= 0 && member < size) return;
  throw InvalidArgument("{}: {} {} is not a member; members are 0 to {}", to_string(kind), role, member,
                        size - 1);
}

void require_same_dtype(CollectiveKind kind, const Tensor& input, const Tensor& output) {
  if (input.dtype() == output.dtype()) return;
  throw InvalidArgument("{}: input is {} but output is {}; dtypes must agree", to_string(kind),
                        describe(input), describe(output));
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

CollectiveCall all_reduce_call(const Tensor& input, const Tensor& output, ReduceOp op, std::uint64_t layout) {
  constexpr auto kKind = CollectiveKind::kAllReduce;
  require_legal(op, input.dtype());
  if (&input != &output) {
    require_same_dtype(kKind, input, output);
    require_elements(kKind, output, "output", input.elements(), "as many as the input");
    require_aliasing(kKind, input, output, 0);
  }
  CollectiveCall call = make_call(kKind, input, output, input.elements());
  call.op = op;
  call.layout = layout;
  return call;
}

CollectiveCall reduce_call(const Tensor& input, const Tensor& output, ReduceOp op, int root, int rank,
                           int size) {
  constexpr auto kKind = CollectiveKind::kReduce;
  require_legal(op, input.dtype());
  require_member(kKind, root, size, "root");
  CollectiveCall call = make_call(kKind, input, output, input.elements());
  call.op = op;
  call.root = root;
  if (rank != root) {
    call.output = nullptr;
    return call;
  }
  require_same_dtype(kKind, input, output);
  require_elements(kKind, output, "output", input.elements(), "as many as the input");
  require_aliasing(kKind, input, output, 0);
  return call;
}

CollectiveCall broadcast_call(const Tensor& tensor, int root, int size) {
  require_member(CollectiveKind::kBroadcast, root, size, "root");
  CollectiveCall call = make_call(CollectiveKind::kBroadcast, tensor, tensor, tensor.elements());
  call.root = root;
  return call;
}

CollectiveCall all_gather_call(const Tensor& input, const Tensor& output, int rank, int size) {
  constexpr auto kKind = CollectiveKind::kAllGather;
  require_same_dtype(kKind, input, output);
  require_elements(kKind, output, "output", input.elements() * static_cast<std::size_t>(size),
                   "the input's elements times the number of members");
  require_aliasing(kKind, input, output, static_cast<std::size_t>(rank) * input.bytes());
  return make_call(kKind, input, output, input.elements());
}

CollectiveCall all_gather_uneven_call(const Tensor& input, const Tensor& output,
                                      std::span<const std::size_t> counts, int rank, int size) {
  constexpr auto kKind = CollectiveKind::kAllGather;
  if (counts.size() != static_cast<std::size_t>(size)) {
    throw InvalidArgument("{}: {} counts for {} members; give one per member", to_string(kKind),
                          counts.size(), size);
  }
  require_same_dtype(kKind, input, output);
  std::size_t total = 0;
  std::size_t before = 0;
  for (std::size_t member = 0; member < counts.size(); ++member) {
    if (member == static_cast<std::size_t>(rank)) before = total;
    total += counts[member];
  }
  require_elements(kKind, input, "input", counts[static_cast<std::size_t>(rank)], "this member's count");
  require_elements(kKind, output, "output", total, "the sum of all counts");
  require_aliasing(kKind, input, output, before * size_of(input.dtype()));
  CollectiveCall call = make_call(kKind, input, output, input.elements());
  call.counts = counts;
  return call;
}

CollectiveCall reduce_scatter_call(const Tensor& input, const Tensor& output, ReduceOp op, int rank,
                                   int size) {
  constexpr auto kKind = CollectiveKind::kReduceScatter;
  require_legal(op, input.dtype());
  require_same_dtype(kKind, input, output);
  require_elements(kKind, input, "input", output.elements() * static_cast<std::size_t>(size),
                   "the output's elements times the number of members");
  require_aliasing(kKind, output, input, static_cast<std::size_t>(rank) * output.bytes());
  CollectiveCall call = make_call(kKind, input, output, output.elements());
  call.op = op;
  return call;
}

CollectiveCall all_to_all_call(const Tensor& input, const Tensor& output, int size) {
  constexpr auto kKind = CollectiveKind::kAllToAll;
  require_same_dtype(kKind, input, output);
  require_elements(kKind, output, "output", input.elements(), "as many as the input");
  require_disjoint(kKind, input, output);
  return make_call(kKind, input, output, block_elements(kKind, input, "input", size));
}

CollectiveCall gather_call(const Tensor& input, const Tensor& output, int root, int rank, int size) {
  constexpr auto kKind = CollectiveKind::kGather;
  require_member(kKind, root, size, "root");
  CollectiveCall call = make_call(kKind, input, output, input.elements());
  call.root = root;
  if (rank != root) {
    call.output = nullptr;
    return call;
  }
  require_same_dtype(kKind, input, output);
  require_elements(kKind, output, "output", input.elements() * static_cast<std::size_t>(size),
                   "the input's elements times the number of members");
  require_aliasing(kKind, input, output, static_cast<std::size_t>(rank) * input.bytes());
  return call;
}

CollectiveCall scatter_call(const Tensor& input, const Tensor& output, int root, int rank, int size) {
  constexpr auto kKind = CollectiveKind::kScatter;
  require_member(kKind, root, size, "root");
  CollectiveCall call = make_call(kKind, output, output, output.elements());
  call.root = root;
  call.input = nullptr;
  if (rank != root) return call;
  require_same_dtype(kKind, input, output);
  require_elements(kKind, input, "input", output.elements() * static_cast<std::size_t>(size),
                   "the output's elements times the number of members");
  require_aliasing(kKind, output, input, static_cast<std::size_t>(rank) * output.bytes());
  call.input = input.data();
  call.buffers[0] = &input.buffer();
  return call;
}

CollectiveCall message_call(CollectiveKind kind, const Tensor& tensor, int peer, int tag, int rank,
                            int size) {
  require_member(kind, peer, size, "peer");
  if (peer == rank)
    throw InvalidArgument("{}: member {} cannot exchange messages with itself", to_string(kind), rank);
  constexpr int kLargestTag = 32767;  // what every MPI allows
  if (tag < 0 || tag > kLargestTag) {
    throw InvalidArgument("{}: tag {} is out of range; tags are 0 to {}", to_string(kind), tag, kLargestTag);
  }
  CollectiveCall call = make_call(kind, tensor, tensor, tensor.elements());
  call.root = peer;
  call.tag = tag;
  return call;
}

}  // namespace

CollectiveCall Communicator::in_force(CollectiveCall call) const {
  call.timeout_seconds = options_.timeout_seconds;
  if (call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kReceive) return call;
  if (call.kind == CollectiveKind::kAllReduce) call.implementation = options_.implementation;
  if (purpose_ != 0 || call.implementation != CommunicationImplementation::kAuto) {
    const auto implementation = static_cast<std::uint64_t>(call.implementation);
    call.layout = Fingerprint().add(call.layout).add(purpose_).add(implementation).value();
  }
  return call;
}

CallOptions::CallOptions(Communicator& communicator, const CommunicationOptions& options,
                         std::uint64_t purpose)
    : communicator_(communicator),
      outer_options_(communicator.options_),
      outer_purpose_(communicator.purpose_) {
  options.validate();
  communicator.options_ = outer_options_.merge(options);
  if (purpose != 0) communicator.purpose_ = Fingerprint().add(outer_purpose_).add(purpose).value();
}

CallOptions::~CallOptions() {
  communicator_.options_ = outer_options_;
  communicator_.purpose_ = outer_purpose_;
}

void Communicator::all_reduce(const Tensor& input, const Tensor& output, ReduceOp op, std::uint64_t layout) {
  run(in_force(all_reduce_call(input, output, op, layout)));
}
Work Communicator::all_reduce_async(const Tensor& input, const Tensor& output, ReduceOp op,
                                    std::uint64_t layout) {
  return start(in_force(all_reduce_call(input, output, op, layout)));
}

void Communicator::reduce(const Tensor& input, const Tensor& output, ReduceOp op, int root) {
  run(in_force(reduce_call(input, output, op, root, rank(), size())));
}
Work Communicator::reduce_async(const Tensor& input, const Tensor& output, ReduceOp op, int root) {
  return start(in_force(reduce_call(input, output, op, root, rank(), size())));
}

void Communicator::broadcast(const Tensor& tensor, int root) {
  run(in_force(broadcast_call(tensor, root, size())));
}
Work Communicator::broadcast_async(const Tensor& tensor, int root) {
  return start(in_force(broadcast_call(tensor, root, size())));
}

void Communicator::all_gather(const Tensor& input, const Tensor& output) {
  run(in_force(all_gather_call(input, output, rank(), size())));
}
Work Communicator::all_gather_async(const Tensor& input, const Tensor& output) {
  return start(in_force(all_gather_call(input, output, rank(), size())));
}

void Communicator::all_gather_uneven(const Tensor& input, const Tensor& output,
                                     std::span<const std::size_t> counts) {
  run(in_force(all_gather_uneven_call(input, output, counts, rank(), size())));
}
Work Communicator::all_gather_uneven_async(const Tensor& input, const Tensor& output,
                                           std::span<const std::size_t> counts) {
  return start(in_force(all_gather_uneven_call(input, output, counts, rank(), size())));
}

void Communicator::reduce_scatter(const Tensor& input, const Tensor& output, ReduceOp op) {
  run(in_force(reduce_scatter_call(input, output, op, rank(), size())));
}
Work Communicator::reduce_scatter_async(const Tensor& input, const Tensor& output, ReduceOp op) {
  return start(in_force(reduce_scatter_call(input, output, op, rank(), size())));
}

void Communicator::all_to_all(const Tensor& input, const Tensor& output) {
  run(in_force(all_to_all_call(input, output, size())));
}
Work Communicator::all_to_all_async(const Tensor& input, const Tensor& output) {
  return start(in_force(all_to_all_call(input, output, size())));
}

void Communicator::gather(const Tensor& input, const Tensor& output, int root) {
  run(in_force(gather_call(input, output, root, rank(), size())));
}
Work Communicator::gather_async(const Tensor& input, const Tensor& output, int root) {
  return start(in_force(gather_call(input, output, root, rank(), size())));
}

void Communicator::scatter(const Tensor& input, const Tensor& output, int root) {
  run(in_force(scatter_call(input, output, root, rank(), size())));
}
Work Communicator::scatter_async(const Tensor& input, const Tensor& output, int root) {
  return start(in_force(scatter_call(input, output, root, rank(), size())));
}

void Communicator::barrier() { run(in_force(CollectiveCall{})); }
Work Communicator::barrier_async() { return start(in_force(CollectiveCall{})); }

void Communicator::send(const Tensor& tensor, int peer, int tag) {
  run(in_force(message_call(CollectiveKind::kSend, tensor, peer, tag, rank(), size())));
}
Work Communicator::send_async(const Tensor& tensor, int peer, int tag) {
  return start(in_force(message_call(CollectiveKind::kSend, tensor, peer, tag, rank(), size())));
}

void Communicator::receive(const Tensor& tensor, int peer, int tag) {
  run(in_force(message_call(CollectiveKind::kReceive, tensor, peer, tag, rank(), size())));
}
Work Communicator::receive_async(const Tensor& tensor, int peer, int tag) {
  return start(in_force(message_call(CollectiveKind::kReceive, tensor, peer, tag, rank(), size())));
}

}  // namespace cohort
