#include "shares.h"

#include <algorithm>
#include <cstring>

#include <cohort/base/error.h>

#include "contribution.h"
#include "pieces.h"
#include "share.h"
#include "tuning.h"

namespace cohort::node {

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

}  // namespace cohort::node
