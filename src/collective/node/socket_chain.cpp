#include "socket_chain.h"

#include <algorithm>

#include "direct.h"
#include "remote_buffer.h"
#include "share.h"
#include "tuning.h"

namespace cohort::node {
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
