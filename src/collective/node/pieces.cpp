#include "pieces.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include <cohort/base/error.h>
#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

#include "call_plan.h"
#include "protocol.h"

namespace cohort::node {
namespace {

constexpr std::size_t kPiecesBetweenYields = kBytesBetweenYields / kPieceBytes;

}  // namespace

void note_collected(const Endpoint& endpoint, const CollectiveCall& call, const Range& range) {
  if (!endpoint.is_counted() || range.elements == 0) return;
  const Position& position = endpoint.position();
  const CollectiveTraits& traits = traits_of(call.kind);
  if (traits.pattern == CollectiveTraits::Pattern::kToRoot && position.rank != call.root) return;
  for (int member = 0; member < position.size; ++member) {
    if (traits.pattern == CollectiveTraits::Pattern::kFromRoot && member != call.root) continue;
    endpoint.note_moved(member, range.elements * size_of(call.dtype));
  }
}

Task<> exchange_in_pieces(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel) {
  const Position& position = endpoint.position();
  const std::size_t elements = block_elements(call);
  const std::size_t piece_elements = std::max<std::size_t>(
      kPieceBytes / (blocks_brought(call.kind, position.size) * size_of(call.dtype)), 1);
  COHORT_CHECK(piece_elements * blocks_brought(call.kind, position.size) * size_of(call.dtype) <=
               kPieceBytes);
  const std::size_t pieces = (elements + piece_elements - 1) / piece_elements;
  const std::uint64_t first = endpoint.next_pieces(pieces);
  const auto range = [&](std::size_t piece) {
    const std::size_t begin = piece * piece_elements;
    return Range{begin, std::min(piece_elements, elements - begin)};
  };
  for (std::size_t step = 0; step <= pieces; ++step) {
    if (step < pieces) {
      contribute(call, position, range(step), endpoint.cell(position.rank, first + step));
      endpoint.raise_pieces(first + step + 1);
    }
    if (step == 0) continue;
    const std::uint64_t reading = first + step - 1;
    co_await until([&endpoint, reading] { return endpoint.all_have_pieces(reading + 1); });
    const std::span<const std::byte*> cells = endpoint.pointers();
    for (std::size_t member = 0; member < cells.size(); ++member)
      cells[member] = endpoint.cell(static_cast<int>(member), reading);
    note_collected(endpoint, call, range(step - 1));
    collect(call, kernel, position, range(step - 1), cells, true);
    if (step % kPiecesBetweenYields == 0) co_await yield();
  }
}

// ---- in shares

bool goes_in_shares(const Endpoint& endpoint, CollectiveKind kind, std::size_t bytes) noexcept {
  const auto members = static_cast<std::size_t>(endpoint.position().size);
  if (!reduces_whole(kind) || members <= 3) return false;
  if (endpoint.has_levels()) return (members - 1) * bytes > kMostReadAtOnce;
  // A step reads twice its contributions instead of one less than there are members.
  return (members - 3) * std::min(bytes, kStepBytes) > kLeastSavedByShares;
}

void reduce_share(const Endpoint& endpoint, ReductionKernel kernel, std::size_t element_bytes,
                  std::size_t bytes, std::span<const std::byte*> cells, std::byte* own_cell) {
  const Position& position = endpoint.position();
  const Share share = share_of(position.rank, position.size, bytes);
  if (share.bytes == 0) return;
  for (int member = 0; member < position.size; ++member) {
    cells[static_cast<std::size_t>(member)] += share.begin;
    endpoint.note_moved(member, share.bytes);
  }
  // No other member reads this place of the contribution.
  std::byte* const result = own_cell + share.begin;
  kernel(cells, {&result, 1}, share.bytes / element_bytes, {});
}

void collect_shares(const Endpoint& endpoint, std::size_t bytes, std::span<const std::byte* const> cells,
                    std::byte* to) {
  for (int member = 0; member < endpoint.position().size; ++member) {
    const Share share = share_of(member, endpoint.position().size, bytes);
    if (share.bytes == 0) continue;
    std::memcpy(to + share.begin, cells[static_cast<std::size_t>(member)] + share.begin, share.bytes);
    endpoint.note_moved(member, share.bytes);
  }
}

Task<> exchange_in_steps(Endpoint& endpoint, const CollectiveCall& call, ReductionKernel kernel) {
  const Position& position = endpoint.position();
  const std::size_t element_bytes = size_of(call.dtype);
  const std::size_t elements = block_elements(call);
  const std::size_t blocks = blocks_brought(call.kind, position.size);
  const std::size_t step_elements = std::max<std::size_t>(kStepBytes / (blocks * element_bytes), 1);
  COHORT_CHECK(step_elements * blocks * element_bytes <= kStepBytes);
  std::size_t step = 0;
  for (std::size_t begin = 0; begin < elements; begin += step_elements, ++step) {
    const Range range{begin, std::min(step_elements, elements - begin)};
    const auto find_cells = [&] {
      const std::span<const std::byte*> cells = endpoint.pointers();
      for (std::size_t member = 0; member < cells.size(); ++member)
        cells[member] = endpoint.step_cell(static_cast<int>(member), step);
      return cells;
    };
    std::byte* const own_cell = endpoint.step_cell(position.rank, step);
    contribute(call, position, range, own_cell);
    endpoint.raise_done();
    co_await until([&endpoint] { return endpoint.all_are_done(); });
    const std::size_t bytes = range.elements * element_bytes;
    if (goes_in_shares(endpoint, call.kind, bytes)) {
      reduce_share(endpoint, kernel, element_bytes, bytes, find_cells(), own_cell);
      endpoint.raise_done();
      co_await until([&endpoint] { return endpoint.all_are_done(); });
      if (call.kind == CollectiveKind::kAllReduce || position.rank == call.root)
        collect_shares(endpoint, bytes, find_cells(), call.output + begin * element_bytes);
    } else {
      note_collected(endpoint, call, range);
      collect(call, kernel, position, range, find_cells(), false);
    }
    if (step % (kBytesBetweenYields / kStepBytes) == 0) co_await yield();
  }
  // The others may still read this member's.
  endpoint.set_cells_are_read();
}

// ---- along the members

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
