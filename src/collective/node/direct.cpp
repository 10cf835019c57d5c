#include "direct.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <cohort/collective/reduction.h>

#include "call_plan.h"
#include "device/node_heap.h"
#include "endpoint.h"
#include "protocol.h"

namespace cohort::node {
namespace {

/// Larger than any buffer, and still far from overflowing.
constexpr std::size_t kEverything = std::size_t{1} << 62;

/// Members that a result goes to, one after the other from `first` on.
struct Targets {
  int first = 0;
  int count = 1;
};

/// One member's share of a direct collective.
class DirectExchange {
 public:
  DirectExchange(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel, bool in_place)
      : endpoint_(endpoint),
        call_(call),
        kernel_(kernel),
        position_(endpoint.position()),
        in_place_(in_place),
        buffers_(endpoint.member_buffers()) {
    buffers_.clear();
    bool all_addressed = true;
    for (int member = 0; member < position_.size; ++member) {
      const BufferAddresses addresses = addresses_in(endpoint, member);
      const NodeMemory& memory = endpoint.group().memory();
      const int worker = endpoint.group().worker_of(member);
      buffers_.push_back({{memory, worker, addresses.input, addresses.input_in_heap},
                          {memory, worker, addresses.output, addresses.output_in_heap}});
      for (const RemoteBuffer* buffer : {&buffers_.back().input, &buffers_.back().output})
        all_addressed &= buffer->addressed() || !buffer->exists();
    }
    shares_broadcast_ = call.kind == CollectiveKind::kBroadcast && position_.size == 2 &&
                        (announced_buffers(endpoint).access != BufferAccess::kAddressed ||
                         call.elements * size_of(call.dtype) >= kSmallestSharedBroadcast);
    hints_ = hints_for(whole());
    if (results_bytes() >= kSmallestStreamedPush) push_hint_ = CopyHint::kStream;
    block_bytes_ = all_addressed ? kEverything : kSingleCopyBlock;
    if (!all_addressed) scratch_ = allocate(kSingleCopyBlock * (buffers_.size() + 1), Device());
  }

  /// What this member works on: bytes of whole inputs and outputs, or of blocks.
  [[nodiscard]] Share whole() const {
    const std::size_t bytes = call_.elements * size_of(call_.dtype);
    switch (call_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kReduce: return share_of(position_.rank, position_.size, bytes);
      case CollectiveKind::kBroadcast:
        return shares_broadcast_ ? share_of(position_.rank, 2, bytes) : Share{0, bytes};
      case CollectiveKind::kAllToAll: return {0, block_elements(call_) * size_of(call_.dtype)};
      case CollectiveKind::kAllGather:
      case CollectiveKind::kReduceScatter:
      case CollectiveKind::kGather:
      case CollectiveKind::kScatter:
      case CollectiveKind::kSplit:
      case CollectiveKind::kBarrier:
      case CollectiveKind::kSend:
      case CollectiveKind::kReceive: break;
    }
    return {0, own_block().bytes};
  }

  /// Does a part of it.
  void work(const Share& part) const {
    const Share own = own_block();
    switch (call_.kind) {
      // This member's output first: its cache lines are the ones that go to the nearest cache.
      case CollectiveKind::kAllReduce: return reduce(part, 0, {position_.rank, position_.size});
      case CollectiveKind::kReduce: return reduce(part, 0, {call_.root, 1});
      case CollectiveKind::kReduceScatter: return reduce(part, own.begin, {position_.rank, 1});
      case CollectiveKind::kBroadcast: return broadcast(part);
      case CollectiveKind::kSplit:
      case CollectiveKind::kAllGather:
        return for_each_member([&](int to) {
          copy(input(position_.rank), part.begin, output(to), own.begin + part.begin, part.bytes, push_hint_);
        });
      case CollectiveKind::kGather:
        return copy(input(position_.rank), part.begin, output(call_.root), own.begin + part.begin, part.bytes,
                    push_hint_);
      case CollectiveKind::kScatter:
        return copy(input(call_.root), own.begin + part.begin, output(position_.rank), part.begin,
                    part.bytes);
      case CollectiveKind::kAllToAll:
        return for_each_member([&](int to) {
          const Share theirs = bytes_of(block_of(call_, to));
          const std::size_t begin = std::min(part.begin, theirs.bytes);
          copy(input(position_.rank), theirs.begin + begin, output(to),
               static_cast<std::size_t>(position_.rank) * theirs.bytes + begin,
               std::min(part.bytes, theirs.bytes - begin), push_hint_);
        });
      case CollectiveKind::kBarrier:
      case CollectiveKind::kSend:
      case CollectiveKind::kReceive: return;
    }
  }

 private:
  [[nodiscard]] const RemoteBuffer& input(int member) const noexcept {
    return buffers_[static_cast<std::size_t>(member)].input;
  }
  [[nodiscard]] const RemoteBuffer& output(int member) const noexcept {
    return buffers_[static_cast<std::size_t>(member)].output;
  }

  [[nodiscard]] Share bytes_of(const Block& block) const noexcept {
    return {block.begin * size_of(call_.dtype), block.elements * size_of(call_.dtype)};
  }

  /// Scratch for a block of what a member's private memory holds, or, beyond the last member, for the result.
  [[nodiscard]] std::byte* scratch(int index) const noexcept {
    return scratch_ == nullptr ? nullptr
                               : scratch_->data() + static_cast<std::size_t>(index) * kSingleCopyBlock;
  }

  /// Reduces a share of all members' inputs, which begins at `offset` of each, to the targets' outputs.
  void reduce(const Share& share, std::size_t offset, const Targets& targets) const {
    const std::span<const std::byte*> sources = endpoint_.pointers();
    const std::span<std::byte*> results = endpoint_.output_pointers();
    const std::size_t end = share.begin + share.bytes;
    for (std::size_t begin = share.begin; begin < end; begin += block_bytes_) {
      const std::size_t bytes = std::min(block_bytes_, end - begin);
      for_each_member([&](int member) {
        sources[static_cast<std::size_t>(member)] = input(member).see(offset + begin, bytes, scratch(member));
        endpoint_.note_moved(member, bytes);
      });
      // What cannot be written directly is written once, here, and copied from here.
      std::size_t addressed = 0;
      for_each(targets, [&](const RemoteBuffer& target) {
        if (target.addressed()) results[addressed++] = target.target(begin, nullptr);
      });
      if (addressed == 0) results[addressed++] = scratch(position_.size);
      kernel_(sources, results.first(addressed), bytes / size_of(call_.dtype), hints_);
      for_each(targets, [&](const RemoteBuffer& target) {
        if (!target.addressed()) target.put(begin, results.front(), bytes);
      });
      note_written(targets, bytes);
    }
  }

  template <class Function>
  void for_each(const Targets& targets, Function function) const {
    for (int step = 0; step < targets.count; ++step)
      function(output((targets.first + step) % position_.size));
  }

  void note_written(const Targets& targets, std::size_t bytes) const {
    for (int step = 0; step < targets.count && endpoint_.is_counted(); ++step)
      endpoint_.note_moved((targets.first + step) % position_.size, bytes);
  }

  /// In place, the hardware's own guesses are best at every size, unless converting the elements keeps
  /// the processor from looking far enough ahead.
  [[nodiscard]] ReductionHints hints_for(const Share& share) const noexcept {
    ReductionHints hints;
    if (in_place_ && !is_half(call_.dtype)) return hints;
    const std::size_t whole = share.bytes * static_cast<std::size_t>(position_.size);
    if (whole <= kLargestPrefetch) hints.prefetch_outputs_bytes = kPrefetchAhead;
    hints.stream = !in_place_ && whole >= kSmallestStream;
    hints.stream_others = !in_place_ && whole >= kSmallestStreamOthers;
    return hints;
  }

  /// Of all members together, in a call that puts blocks into others' outputs.
  [[nodiscard]] std::size_t results_bytes() const {
    std::size_t bytes = 0;
    for (int member = 0; member < position_.size; ++member) bytes += bytes_of(block_of(call_, member)).bytes;
    return call_.kind == CollectiveKind::kGather ? bytes : bytes * static_cast<std::size_t>(position_.size);
  }

  /// All members, this one first and each beginning with another peer, so that they do not all crowd
  /// around the same one: system calls on one process's memory wait for each other.
  template <class Function>
  void for_each_member(Function function) const {
    for (int step = 0; step < position_.size; ++step) function((position_.rank + step) % position_.size);
  }

  [[nodiscard]] Share own_block() const {
    const Block block = block_of(call_, position_.rank);
    return {block.begin * size_of(call_.dtype), block.elements * size_of(call_.dtype)};
  }

  void broadcast(const Share& part) const {
    const bool is_root = position_.rank == call_.root;
    if (position_.size != 2) {
      // The members that want the data are enough to saturate its source.
      if (!is_root) copy(input(call_.root), part.begin, output(position_.rank), part.begin, part.bytes);
    } else if (shares_broadcast_) {
      // Past the caches: what was there is of no use any more.
      copy(input(call_.root), part.begin, output(1 - call_.root), part.begin, part.bytes, CopyHint::kStream);
    } else if (is_root) {
      copy(input(call_.root), part.begin, output(1 - call_.root), part.begin, part.bytes);
    }
  }

  void copy(const RemoteBuffer& from, std::size_t from_begin, const RemoteBuffer& to, std::size_t to_begin,
            std::size_t bytes, CopyHint hint = CopyHint::kCached) const {
    for (std::size_t at = 0; at < bytes; at += block_bytes_) {
      const std::size_t part = std::min(block_bytes_, bytes - at);
      if (from.addressed()) {
        to.put(to_begin + at, from.see(from_begin + at, part, nullptr), part, hint);
        continue;
      }
      // The kernel copies straight to where the data belongs, if this process can write there.
      std::byte* target = to.target(to_begin + at, scratch(0));
      to.put(to_begin + at, from.see(from_begin + at, part, target), part);
    }
  }

  Endpoint& endpoint_;
  const CollectiveCall& call_;
  ReductionKernel kernel_;
  const Position& position_;
  bool in_place_;
  bool shares_broadcast_ = false;        ///< both of two members copy a half; they know alike
  std::vector<MemberBuffers>& buffers_;  ///< the endpoint's, since lists are kept for the next call
  ReductionHints hints_;
  CopyHint push_hint_ = CopyHint::kCached;  ///< for blocks that this member puts into others' outputs
  std::size_t block_bytes_ = kEverything;
  std::shared_ptr<const Buffer> scratch_;  ///< a block per member, and one for the result
};

}  // namespace

BufferAddresses addresses_in(const Endpoint& endpoint, int member) noexcept {
  BufferAddresses addresses;
  std::memcpy(&addresses, endpoint.payload_of(member) + sizeof(CallDetails), sizeof addresses);
  return addresses;
}

BufferAddresses addresses_of(const CollectiveCall& call, const Position& position) noexcept {
  BufferAddresses addresses;
  const NodeHeap* heap = NodeHeap::of_this_process();
  const auto locate = [heap](const std::byte* data, std::size_t bytes, std::uint64_t& address,
                             bool& in_heap) {
    const auto offset = heap == nullptr ? std::nullopt : heap->offset_of(data, bytes);
    address = offset.value_or(reinterpret_cast<std::uintptr_t>(data));
    in_heap = offset.has_value();
  };
  locate(call.input, input_bytes(call, position.rank, position.size), addresses.input,
         addresses.input_in_heap);
  locate(call.output, output_bytes(call, position.rank, position.size), addresses.output,
         addresses.output_in_heap);
  return addresses;
}

AnnouncedBuffers announced_buffers(const Endpoint& endpoint) noexcept {
  bool addressed = true;
  bool in_place = true;
  for (int member = 0; member < endpoint.position().size; ++member) {
    const BufferAddresses addresses = addresses_in(endpoint, member);
    addressed &= addresses.input_in_heap || addresses.input == 0;
    addressed &= addresses.output_in_heap || addresses.output == 0;
    in_place &= addresses.input == addresses.output;
  }
  if (addressed || endpoint.group().is_one_process()) return {BufferAccess::kAddressed, in_place};
  const bool has_single_copy = endpoint.group().memory().has_single_copy();
  return {has_single_copy ? BufferAccess::kSingleCopy : BufferAccess::kNone, in_place};
}

Task<> exchange_directly(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel,
                         bool in_place) {
  const DirectExchange exchange(endpoint, call, kernel, in_place);
  const Share whole = exchange.whole();
  for (std::size_t done = 0; done < whole.bytes; done += kBytesBetweenYields) {
    if (done > 0) co_await yield();
    exchange.work({whole.begin + done, std::min(kBytesBetweenYields, whole.bytes - done)});
  }
  endpoint.raise_done();
  co_await until([&endpoint] { return endpoint.all_are_done(); });
  endpoint.failure_watch().require_unfailed_so_far();
}

// ---- along the sockets

namespace {

class SocketChain {
 public:
  SocketChain(Endpoint& endpoint, const CollectiveCall& call)
      : endpoint_(endpoint),
        call_(call),
        sockets_(endpoint.group().sockets()),
        rank_(endpoint.position().rank) {
    const auto own = std::ranges::find_if(
        sockets_, [this](const MemberRange& socket) { return socket.begin <= rank_ && rank_ < socket.end; });
    socket_ = static_cast<std::size_t>(own - sockets_.begin());
    int responsible = endpoint.position().size;
    for (const MemberRange& socket : sockets_) responsible = std::min(responsible, socket.end - socket.begin);
    const int index = rank_ - own->begin;
    if (index < responsible) share_ = share_of(index, responsible, call.elements * size_of(call.dtype));
    block_bytes_ = std::clamp((share_.bytes / kChainBlocks + kAlignment - 1) / kAlignment * kAlignment,
                              kSmallestChainBlock, kLargestChainBlock);
    // A mean is a sum that the last socket divides.
    kernel_ = reduction_kernel(call.dtype, call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op);
  }

  Task<> run() {
    for (std::uint32_t block = 0; block < blocks(); ++block) {
      if (socket_ > 0) co_await until([&] { return has_done(socket_ - 1, block); });
      reduce(block);
      endpoint_.raise_blocks_done(block + 1);
      if (block % blocks_between_yields() == 0) co_await yield();
    }
    if (is_last()) co_return;
    for (std::uint32_t block = 0; block < blocks(); ++block) {
      co_await until([&] { return has_done(sockets_.size() - 1, block); });
      spread(block, peer(sockets_.size() - 1));
      if (block % blocks_between_yields() == 0) co_await yield();
    }
  }

 private:
  [[nodiscard]] bool is_last() const noexcept { return socket_ + 1 == sockets_.size(); }
  [[nodiscard]] std::uint32_t blocks() const noexcept {
    return static_cast<std::uint32_t>((share_.bytes + block_bytes_ - 1) / block_bytes_);
  }
  [[nodiscard]] std::uint32_t blocks_between_yields() const noexcept {
    return static_cast<std::uint32_t>(kBytesBetweenYields / block_bytes_);
  }
  [[nodiscard]] Share bytes_of(std::uint32_t block) const noexcept {
    const std::size_t begin = block * block_bytes_;
    return {share_.begin + begin, std::min(block_bytes_, share_.bytes - begin)};
  }
  /// The member that is responsible for the same blocks on another socket.
  [[nodiscard]] int peer(std::size_t socket) const noexcept {
    return sockets_[socket].begin + rank_ - sockets_[socket_].begin;
  }
  [[nodiscard]] bool has_done(std::size_t socket, std::uint32_t block) const noexcept {
    return endpoint_.has_blocks_done(peer(socket), block + 1);
  }

  [[nodiscard]] RemoteBuffer buffer_of(int member, std::uint64_t address, bool in_heap) const noexcept {
    return {endpoint_.group().memory(), endpoint_.group().worker_of(member), address, in_heap};
  }
  [[nodiscard]] const std::byte* input(int member, const Share& at) const {
    const BufferAddresses addresses = addresses_in(endpoint_, member);
    return buffer_of(member, addresses.input, addresses.input_in_heap).see(at.begin, at.bytes, nullptr);
  }
  [[nodiscard]] std::byte* output(int member, const Share& at) const {
    const BufferAddresses addresses = addresses_in(endpoint_, member);
    return buffer_of(member, addresses.output, addresses.output_in_heap).target(at.begin, nullptr);
  }

  /// What this socket adds: into this member's output, where the next socket finds it, or, on the last one,
  /// into the outputs of the whole socket.
  void reduce(std::uint32_t block) const {
    const Share at = bytes_of(block);
    std::size_t sources = 0;
    if (socket_ > 0) add_source(sources, peer(socket_ - 1), output(peer(socket_ - 1), at), at);
    for (int member = sockets_[socket_].begin; member < sockets_[socket_].end; ++member)
      add_source(sources, member, input(member, at), at);
    std::byte* const own = output(rank_, at);
    const std::size_t elements = at.bytes / size_of(call_.dtype);
    kernel_(endpoint_.pointers().first(sources), {&own, 1}, elements, {});
    if (!is_last()) return;
    if (call_.op == ReduceOp::kMean)
      divide_elements(call_.dtype, own, elements, static_cast<std::size_t>(endpoint_.position().size));
    spread(block, rank_);
  }

  void add_source(std::size_t& sources, int member, const std::byte* data, const Share& at) const {
    endpoint_.pointers()[sources++] = data;
    endpoint_.note_moved(member, at.bytes);
  }

  /// Copies the result from where `owner` has it to this socket's outputs.
  void spread(std::uint32_t block, int owner) const {
    const Share at = bytes_of(block);
    std::byte* const own = output(rank_, at);
    if (owner != rank_) {
      copy_bytes(own, output(owner, at), at.bytes);
      endpoint_.note_moved(owner, at.bytes);
    }
    for (int member = sockets_[socket_].begin; member < sockets_[socket_].end; ++member) {
      if (member == rank_) continue;
      copy_bytes(output(member, at), own, at.bytes);
      endpoint_.note_moved(member, at.bytes);
    }
  }

  Endpoint& endpoint_;
  const CollectiveCall& call_;
  const std::vector<MemberRange>& sockets_;
  int rank_;
  std::size_t socket_ = 0;
  Share share_;
  std::size_t block_bytes_ = 0;
  ReductionKernel kernel_ = nullptr;
};

}  // namespace

bool goes_along_sockets(const Endpoint& endpoint, const CollectiveCall& call, BufferAccess access) {
  const std::size_t sockets = endpoint.group().sockets().size();
  return sockets > 1 && call.kind == CollectiveKind::kAllReduce && !is_half(call.dtype) &&
         call.elements * size_of(call.dtype) >= kSmallestSocketChain && access == BufferAccess::kAddressed;
}

Task<> reduce_along_sockets(Endpoint& endpoint, const CollectiveCall& call) {
  // The announcements say where the buffers are, so the next one has to wait until all are done with them.
  endpoint.await_next_done();
  SocketChain chain(endpoint, call);
  co_await chain.run();
  endpoint.raise_done();
  co_await until([&endpoint] { return endpoint.all_are_done(); });
  endpoint.failure_watch().require_unfailed_so_far();
}

}  // namespace cohort::node
