#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include <cohort/base/error.h>

#include "carry_out.h"
#include "datatypes.h"

namespace cohort::preload {
namespace {

void require_same_bytes(std::size_t sent, std::size_t received) {
  if (sent == received) return;
  throw InvalidArgument("this rank sends {} bytes where it receives {} from itself", sent, received);
}

/// Of a gather or a scatter: the blocks of all, which only the root has, and a rank's own.
struct RootedBlocks {
  bool is_root;
  bool in_place;  ///< the root's own block is among those of all
  Elements all;
  Elements own;

  [[nodiscard]] std::size_t bytes() const noexcept { return own.bytes(); }
  /// Whether they can be used where they are: without gaps, and of the right sizes.
  [[nodiscard]] bool are_usable_by(const ServedCommunicator& group) const noexcept {
    return own.in_one_piece() && all.in_one_piece() &&
           (!is_root || own.bytes() * static_cast<std::size_t>(group.size) == all.bytes());
  }
  [[nodiscard]] bool are_empty() const noexcept { return own.bytes() == 0 && all.bytes() == 0; }
};

/// As a caller passes them.
template <class Count>
struct Passed {
  const void* buffer;
  Count count;
  MPI_Datatype type;
};

/// `all.count` elements are each block's. Nothing where the arguments are wrong.
template <class Count>
std::optional<RootedBlocks> rooted_blocks(const ServedCommunicator& group, int root, const Passed<Count>& all,
                                          const Passed<Count>& own) {
  if (!is_root_of(group, root)) return std::nullopt;
  const bool is_root = group.rank == root;
  const bool in_place = is_root && own.buffer == MPI_IN_PLACE;
  if ((is_root && all.count < 0) || (!in_place && own.count < 0)) return std::nullopt;
  if (is_root && own.count > 0 && is_refused(own.buffer, all.buffer)) return std::nullopt;
  if (is_misplaced(own.buffer, is_root) || is_misplaced(all.buffer, !is_root)) return std::nullopt;
  const auto members = static_cast<std::size_t>(group.size);
  const auto count = is_root ? static_cast<std::size_t>(all.count) : 0;
  const std::optional<Elements> of_all =
      is_root ? Elements::of(all.buffer, count * members, all.type) : Elements();
  if (!of_all) return std::nullopt;
  const std::optional<Elements> of_rank =
      in_place ? of_all->part(static_cast<std::size_t>(root) * count, count)
               : Elements::of(own.buffer, static_cast<std::size_t>(own.count), own.type);
  if (!of_rank) return std::nullopt;
  return RootedBlocks{is_root, in_place, *of_all, *of_rank};
}

/// The blocks of a call by member. False where the arguments are wrong.
template <class Count, class Offset>
bool find_blocks(std::vector<Elements>& blocks, const void* buffer, const Count* counts,
                 const Offset* offsets, MPI_Datatype type) {
  const std::optional<Layout> layout = layout_of(type);
  if (!layout || counts == nullptr || offsets == nullptr) return false;
  const Elements first{static_cast<std::byte*>(const_cast<void*>(buffer)), type, 0, *layout};
  for (std::size_t member = 0; member < blocks.size(); ++member) {
    if (counts[member] < 0) return false;
    blocks[member] = first.at(static_cast<std::ptrdiff_t>(offsets[member]));
    blocks[member].count = static_cast<std::size_t>(counts[member]);
    if (blocks[member].lack_memory()) return false;
  }
  return true;
}

}  // namespace

Outcome barrier(MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  return carry_out_as("MPI_Barrier", *group, comm, call_of(CollectiveKind::kBarrier, nullptr, nullptr, 0));
}

template <class Count>
Outcome bcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  if (count < 0 || !is_root_of(*group, root) || is_misplaced(buffer)) return kForArguments;
  const std::optional<Elements> elements = Elements::of(buffer, static_cast<std::size_t>(count), type);
  if (!elements) return kForArguments;
  const std::size_t bytes = elements->bytes();
  if (bytes == 0) return kDone;
  if (mpi_is_faster(*group, bytes, bytes)) return left_to_mpi(*group, "MPI_Bcast", By::kMpiForSpeed);
  if (elements->in_one_piece()) [[likely]] {
    return carry_out_as(
        "MPI_Bcast", *group, comm,
        call_of(CollectiveKind::kBroadcast, elements->buffer, elements->buffer, bytes, DType::kUInt8, root));
  }
  return carry_out_as("MPI_Bcast", comm, [&] {
    Packed data(*elements);
    if (group->rank == root) data.read();
    carry_out(*group->communicator,
              call_of(CollectiveKind::kBroadcast, data.data(), data.data(), bytes, DType::kUInt8, root));
    if (group->rank != root) data.write();
  });
}

template <class Count>
Outcome allgather(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                  Count output_count, MPI_Datatype output_type, MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  if (output_count < 0 || is_misplaced(output)) return kForArguments;
  const auto members = static_cast<std::size_t>(group->size);
  const auto rank = static_cast<std::size_t>(group->rank);
  const auto count = static_cast<std::size_t>(output_count);
  const std::optional<Elements> all = Elements::of(output, count * members, output_type);
  const bool in_place = input == MPI_IN_PLACE;
  if (!all || (!in_place && input_count < 0)) return kForArguments;
  const std::optional<Elements> own =
      in_place ? all->part(rank * count, count)
               : Elements::of(input, static_cast<std::size_t>(input_count), input_type);
  if (!own) return kForArguments;
  if (own->bytes() == 0 && all->bytes() == 0) return kDone;
  return carry_out_as("MPI_Allgather", comm, [&] {
    require_same_bytes(own->bytes(), all->bytes() / members);
    Packed from(*own);
    Packed to(*all);
    from.read();
    carry_out(*group->communicator,
              call_of(CollectiveKind::kAllGather, from.data(), to.data(), own->bytes()));
    to.write();
  });
}

template <class Count, class Offset>
Outcome allgatherv(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                   const Count* output_counts, const Offset* offsets, MPI_Datatype output_type,
                   MPI_Comm comm) {
  ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  if (is_misplaced(output)) return kForArguments;
  const auto members = static_cast<std::size_t>(group->size);
  const auto rank = static_cast<std::size_t>(group->rank);
  const bool in_place = input == MPI_IN_PLACE;
  std::vector<Elements>& blocks = group->blocks.from;
  blocks.resize(members);
  if (!find_blocks(blocks, output, output_counts, offsets, output_type) || (!in_place && input_count < 0))
    return kForArguments;
  group->counts.assign(members, 0);
  std::size_t total = 0;
  bool in_one_piece = true;
  for (std::size_t member = 0; member < members; ++member) {
    const Elements& block = blocks[member];
    group->counts[member] = block.bytes();
    in_one_piece = in_one_piece && block.in_one_piece() &&
                   (block.bytes() == 0 || block.buffer == blocks.front().buffer + total);
    total += block.bytes();
  }
  if (total == 0) return kDone;
  const std::optional<Elements> own =
      in_place ? blocks[rank] : Elements::of(input, static_cast<std::size_t>(input_count), input_type);
  if (!own) return kForArguments;
  return carry_out_as("MPI_Allgatherv", comm, [&] {
    require_same_bytes(own->bytes(), group->counts[rank]);
    Packed from(*own);
    from.read();
    std::vector<std::byte> room(in_one_piece ? 0 : total);
    std::byte* const to = in_one_piece ? blocks.front().buffer : room.data();
    CollectiveCall call = call_of(CollectiveKind::kAllGather, from.data(), to, own->bytes());
    call.counts = group->counts;
    carry_out(*group->communicator, call);
    if (in_one_piece) return;
    std::span<const std::byte> rest(room);
    for (const Elements& block : blocks) {
      block.unpack(rest.first(block.bytes()));
      rest = rest.subspan(block.bytes());
    }
  });
}

template <class Count>
Outcome gather(const void* input, Count input_count, MPI_Datatype input_type, void* output,
               Count output_count, MPI_Datatype output_type, int root, MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  const std::optional<RootedBlocks> blocks = rooted_blocks<Count>(
      *group, root, {output, output_count, output_type}, {input, input_count, input_type});
  if (!blocks) return kForArguments;
  if (blocks->are_empty()) return kDone;
  if (mpi_is_faster(*group, blocks->bytes(), blocks->bytes()))
    return left_to_mpi(*group, "MPI_Gather", By::kMpiForSpeed);
  const bool is_root = blocks->is_root;
  if (blocks->are_usable_by(*group)) [[likely]] {
    return carry_out_as(
        "MPI_Gather", *group, comm,
        call_of(CollectiveKind::kGather, blocks->own.buffer, is_root ? blocks->all.buffer : nullptr,
                blocks->bytes(), DType::kUInt8, root));
  }
  return carry_out_as("MPI_Gather", comm, [&] {
    if (is_root)
      require_same_bytes(blocks->bytes(), blocks->all.bytes() / static_cast<std::size_t>(group->size));
    Packed from(blocks->own);
    Packed to(blocks->all);
    from.read();
    carry_out(*group->communicator,
              call_of(CollectiveKind::kGather, from.data(), is_root ? to.data() : nullptr, blocks->bytes(),
                      DType::kUInt8, root));
    if (is_root) to.write();
  });
}

template <class Count>
Outcome scatter(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                Count output_count, MPI_Datatype output_type, int root, MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  const std::optional<RootedBlocks> blocks = rooted_blocks<Count>(
      *group, root, {input, input_count, input_type}, {output, output_count, output_type});
  if (!blocks) return kForArguments;
  if (blocks->are_empty()) return kDone;
  if (mpi_is_faster(*group, blocks->bytes(), blocks->bytes() * static_cast<std::size_t>(group->size)))
    return left_to_mpi(*group, "MPI_Scatter", By::kMpiForSpeed);
  const bool is_root = blocks->is_root;
  if (blocks->are_usable_by(*group)) [[likely]] {
    return carry_out_as("MPI_Scatter", *group, comm,
                        call_of(CollectiveKind::kScatter, is_root ? blocks->all.buffer : nullptr,
                                blocks->own.buffer, blocks->bytes(), DType::kUInt8, root));
  }
  return carry_out_as("MPI_Scatter", comm, [&] {
    const std::size_t block = blocks->bytes();
    if (is_root) require_same_bytes(block, blocks->all.bytes() / static_cast<std::size_t>(group->size));
    Packed from(blocks->all);
    from.read();
    // The root's own block stays where it is: it is this part of the input, packed or not.
    std::byte* const own_part = is_root ? from.data() + static_cast<std::size_t>(root) * block : nullptr;
    Packed to(blocks->own);
    carry_out(*group->communicator,
              call_of(CollectiveKind::kScatter, is_root ? from.data() : nullptr,
                      blocks->in_place ? own_part : to.data(), block, DType::kUInt8, root));
    if (!blocks->in_place) to.write();
  });
}

template <class Count>
Outcome alltoall(const void* input, Count input_count, MPI_Datatype input_type, void* output,
                 Count output_count, MPI_Datatype output_type, MPI_Comm comm) {
  const ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  if (output_count < 0 || is_misplaced(output)) return kForArguments;
  const bool in_place = input == MPI_IN_PLACE;
  if (!in_place && (input_count < 0 || (input_count > 0 && is_refused(input, output)))) return kForArguments;
  const auto members = static_cast<std::size_t>(group->size);
  const std::optional<Elements> to_all =
      Elements::of(output, static_cast<std::size_t>(output_count) * members, output_type);
  const std::optional<Elements> from_all =
      in_place ? to_all : Elements::of(input, static_cast<std::size_t>(input_count) * members, input_type);
  if (!to_all || !from_all) return kForArguments;
  const std::size_t bytes = from_all->bytes();
  if (bytes == 0 && to_all->bytes() == 0) return kDone;
  return carry_out_as("MPI_Alltoall", comm, [&] {
    require_same_bytes(bytes, to_all->bytes());
    Packed from(*from_all);
    Packed to(*to_all);
    from.read();
    std::byte* source = from.data();
    if (in_place && !from.is_copy()) {
      source = from.room(bytes);
      std::memcpy(source, from.data(), bytes);
    }
    carry_out(*group->communicator, call_of(CollectiveKind::kAllToAll, source, to.data(), bytes / members));
    to.write();
  });
}

template <class Count, class Offset>
Outcome alltoallv(const void* input, const Count* input_counts, const Offset* input_offsets,
                  MPI_Datatype input_type, void* output, const Count* output_counts,
                  const Offset* output_offsets, MPI_Datatype output_type, MPI_Comm comm) {
  ServedCommunicator* const group = served(comm);
  if (group == nullptr) return kForCommunicator;
  UnevenBlocks& blocks = group->blocks;
  blocks.from.resize(static_cast<std::size_t>(group->size));
  blocks.to.resize(static_cast<std::size_t>(group->size));
  blocks.in_place = input == MPI_IN_PLACE;
  if (is_misplaced(output) || !find_blocks(blocks.from, output, output_counts, output_offsets, output_type))
    return kForArguments;
  if (blocks.in_place)
    blocks.to = blocks.from;
  else if (!find_blocks(blocks.to, input, input_counts, input_offsets, input_type))
    return kForArguments;
  bool is_done = false;
  const Outcome outcome =
      carry_out_as("MPI_Alltoallv", comm, [&] { is_done = exchange(*group->communicator, blocks); });
  if (is_done || outcome.status != MPI_SUCCESS) return outcome;
  return left_to_mpi(*group, "MPI_Alltoallv", By::kMpiForSizes);
}

template <class Count, class Offset>
Outcome gatherv(const void*, Count, MPI_Datatype, void*, const Count*, const Offset*, MPI_Datatype, int,
                MPI_Comm comm) {
  return always_left("MPI_Gatherv", comm);
}

template <class Count, class Offset>
Outcome scatterv(const void*, const Count*, const Offset*, MPI_Datatype, void*, Count, MPI_Datatype, int,
                 MPI_Comm comm) {
  return always_left("MPI_Scatterv", comm);
}

template <class Count, class Offset>
Outcome alltoallw(const void*, const Count*, const Offset*, const MPI_Datatype*, void*, const Count*,
                  const Offset*, const MPI_Datatype*, MPI_Comm comm) {
  return always_left("MPI_Alltoallw", comm);
}

#define COHORT_MOVING_CALLS(Count, Offset)                                                                \
  template Outcome bcast(void*, Count, MPI_Datatype, int, MPI_Comm);                                      \
  template Outcome allgather(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, MPI_Comm);     \
  template Outcome allgatherv(const void*, Count, MPI_Datatype, void*, const Count*, const Offset*,       \
                              MPI_Datatype, MPI_Comm);                                                    \
  template Outcome gather(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, int, MPI_Comm);   \
  template Outcome scatter(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, int, MPI_Comm);  \
  template Outcome alltoall(const void*, Count, MPI_Datatype, void*, Count, MPI_Datatype, MPI_Comm);      \
  template Outcome alltoallv(const void*, const Count*, const Offset*, MPI_Datatype, void*, const Count*, \
                             const Offset*, MPI_Datatype, MPI_Comm);                                      \
  template Outcome gatherv(const void*, Count, MPI_Datatype, void*, const Count*, const Offset*,          \
                           MPI_Datatype, int, MPI_Comm);                                                  \
  template Outcome scatterv(const void*, const Count*, const Offset*, MPI_Datatype, void*, Count,         \
                            MPI_Datatype, int, MPI_Comm);                                                 \
  template Outcome alltoallw(const void*, const Count*, const Offset*, const MPI_Datatype*, void*,        \
                             const Count*, const Offset*, const MPI_Datatype*, MPI_Comm);
COHORT_MOVING_CALLS(int, int)
COHORT_MOVING_CALLS(MPI_Count, MPI_Aint)

}  // namespace cohort::preload
