#include "member_chain.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "tuning.h"

namespace cohort::node {
namespace {

class MemberChain {
 public:
  MemberChain(Endpoint& endpoint, const CollectiveCall& call)
      : endpoint_(endpoint),
        call_(call),
        rank_(endpoint.position().rank),
        last_(endpoint.position().size - 1),
        bytes_(call.elements * size_of(call.dtype)),
        pieces_((bytes_ + kPieceBytes - 1) / kPieceBytes),
        first_(endpoint.next_pieces(pieces_)),
        // A mean is a sum that the last member divides.
        kernel_(reduction_kernel(call.dtype, call.op == ReduceOp::kMean ? ReduceOp::kSum : call.op)) {}

  Task<> run() {
    for (std::size_t piece = 0; piece < pieces_; ++piece) {
      if (rank_ > 0) co_await until([&] { return has_passed(rank_ - 1, piece); });
      add(piece);
      endpoint_.raise_pieces(first_ + piece + 1);
      if ((piece + 1) % kPiecesBetweenYields == 0) co_await yield();
    }
    for (std::size_t piece = 0; piece < pieces_ && rank_ != last_; ++piece) {
      co_await until([&] { return has_passed(last_, piece); });
      copy_bytes(output(piece), endpoint_.shared_cell(piece), bytes_of(piece));
      endpoint_.note_moved(last_, bytes_of(piece));
      if ((piece + 1) % kPiecesBetweenYields == 0) co_await yield();
    }
  }

 private:
  static constexpr std::size_t kPiecesBetweenYields = kBytesBetweenYields / kPieceBytes;

  [[nodiscard]] bool has_passed(int member, std::size_t piece) noexcept {
    return endpoint_.has_passed(member, first_ + piece + 1);
  }
  [[nodiscard]] std::size_t bytes_of(std::size_t piece) const noexcept {
    return std::min(kPieceBytes, bytes_ - piece * kPieceBytes);
  }
  [[nodiscard]] std::byte* output(std::size_t piece) const noexcept {
    return call_.output + piece * kPieceBytes;
  }

  /// Puts this member's part into the sum of those before it; the last one has the result.
  void add(std::size_t piece) const {
    const std::byte* const own = call_.input + piece * kPieceBytes;
    std::byte* const sum = endpoint_.shared_cell(piece);
    if (rank_ == 0) return copy_bytes(sum, own, bytes_of(piece));
    const std::array<const std::byte*, 2> sources{sum, own};
    const std::size_t elements = bytes_of(piece) / size_of(call_.dtype);
    kernel_(sources, {&sum, 1}, elements, {});
    endpoint_.note_moved(rank_ - 1, bytes_of(piece));
    if (rank_ != last_) return;
    if (call_.op == ReduceOp::kMean)
      divide_elements(call_.dtype, sum, elements, static_cast<std::size_t>(last_) + 1);
    copy_bytes(output(piece), sum, bytes_of(piece));
  }

  Endpoint& endpoint_;
  const CollectiveCall& call_;
  int rank_;
  int last_;
  std::size_t bytes_;
  std::size_t pieces_;
  std::uint64_t first_;  ///< number of the first piece, since the beginning
  ReductionKernel kernel_;
};

}  // namespace

bool goes_along_members(const Endpoint& endpoint, const CollectiveCall& call, std::size_t bytes) noexcept {
  const auto members = static_cast<std::size_t>(endpoint.position().size);
  return call.kind == CollectiveKind::kAllReduce && !is_half(call.dtype) && endpoint.group().shares_cores() &&
         !endpoint.has_levels() && bytes >= std::max(kSmallestChain, members * kLeastChainedPerMember) &&
         bytes <= members * kCells * kPieceBytes;
}

Task<> reduce_along_members(Endpoint& endpoint, const CollectiveCall& call) {
  MemberChain chain(endpoint, call);
  co_await chain.run();
  endpoint.end_turns();
  // The others may still read the result, which lies in all members' cells.
  endpoint.set_cells_are_read();
}

}  // namespace cohort::node
