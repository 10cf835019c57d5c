#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "carry_out.h"
#include "datatypes.h"
#include "mpi_reductions.h"

namespace cohort::preload {
namespace {

/// How Cohort carries a reduction out: by a kernel, or with the MPI's operator. Neither: the MPI does it.
struct ServedReduction {
  const Reduction* by_kernel = nullptr;
  std::optional<MpiReduction> by_mpi = {};

  [[nodiscard]] bool depends_on_order() const noexcept {
    return by_kernel != nullptr ? !by_kernel->is_exact : by_mpi && !by_mpi->is_exact;
  }
};

/// With the MPI's operator; nothing where Cohort does not, or may not, carry it out.
template <class Count>
std::optional<MpiReduction> served_by_mpi(MPI_Datatype type, MPI_Op op, Count count) {
  if (count <= 0) return std::nullopt;
  std::optional<MpiReduction> reduction = mpi_reduction(type, op, static_cast<std::size_t>(count));
  if (reduction && !reduction->is_exact && Communicators::of_this_process().only_exact()) reduction.reset();
  return reduction;
}

/// Of `count` elements; 0 where only a kernel could do it.
template <class Count>
ServedReduction served_reduction(MPI_Datatype type, MPI_Op op, Count count) {
  ServedReduction served;  // the only one, so that it is made where the caller has it
  served.by_kernel = reduction_of(type, op);
  if (served.by_kernel == nullptr) [[unlikely]]
    served.by_mpi = served_by_mpi(type, op, count);
  else if (!served.by_kernel->is_exact && Communicators::of_this_process().only_exact())
    served.by_kernel = nullptr;
  return served;
}

/// The communicator of a reduction, if that is served. Members connect before the first one that depends on
/// the order, unless this rank's arguments are wrong: then others may not be in such a call.
/// `is_legal(group)` says whether they are.
template <class IsLegal>
ServedCommunicator* served_for(MPI_Comm comm, const ServedReduction& reduction, const IsLegal& is_legal) {
  return served_if(
      comm, [&](const ServedCommunicator& group) { return reduction.depends_on_order() && is_legal(group); });
}

/// What is made of the contributions that members bring together.
enum class Made : std::uint8_t { kReduction, kScan, kExscan };

/// Brings the contributions of the members of a reduction by the MPI's operator to all of them, or to `root`
/// alone. Returns them all, as `combine` takes them; nothing to members that do not get them.
std::span<std::byte> gather_for(ServedCommunicator& group, const MpiReduction& reduction, Made made,
                                const void* input, std::optional<int> root = std::nullopt) {
  const std::size_t stride = reduction.stride();
  const std::size_t bytes = static_cast<std::size_t>(group.size) * stride;
  group.gathered.resize(bytes + stride);
  const std::span<std::byte> all = std::span(group.gathered).first(bytes);
  const std::byte* own = bytes_at(input);
  if (reduction.has_gaps()) {
    reduction.copy(all.data() + bytes, input);
    own = all.data() + bytes;
  }
  const bool has_result = !root || *root == group.rank;
  // Not as MPI_Gather and MPI_Allgather have it, and one is not like another, so that members find out that
  // they have called different functions.
  CollectiveCall call = call_of(root ? CollectiveKind::kGather : CollectiveKind::kAllGather, own,
                                has_result ? all.data() : nullptr, reduction.bytes(),
                                made == Made::kScan ? DType::kBool : DType::kInt8, root.value_or(0));
  if (made == Made::kExscan) call.op = ReduceOp::kMax;
  carry_out(*group.communicator, call);
  if (!has_result) return {};
  align(reduction, all);
  return all;
}

/// Whether the MPI is faster among any number of members in a call in which some only send.
template <class Count>
bool is_short(MPI_Datatype type, Count count) {
  const std::size_t bytes = predefined_bytes(type);
  return bytes != 0 && count >= 0 && static_cast<std::size_t>(count) <= kMostBytesOfFastReduce / bytes;
}

/// Each rank combines what all have contributed up to it: with itself, or before it.
template <class Count>
Outcome scan_by(const char* function, bool with_own, const void* input, void* output, Count count,
                MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  if (is_short(type, count)) {  // before all else, since such a call takes no longer than that
    const ServedCommunicator* const members = served(comm);
    return members == nullptr ? kForCommunicator : left_to_mpi(*members, function, By::kMpiForSpeed);
  }
  const ServedReduction served_as{.by_mpi = served_by_mpi(type, op, count)};
  const auto is_for_mpi = [&](const ServedCommunicator& members) {
    return mpi_is_faster_by(*served_as.by_mpi, members.size, true);
  };
  const auto is_legal = [&](const ServedCommunicator& members) {
    // Where there is no result, any address is legal for it.
    if (!with_own && members.rank == 0 && input != MPI_IN_PLACE) return input != nullptr;
    return input != nullptr && output != nullptr && !is_refused(input, output) && !is_misplaced(output);
  };
  ServedCommunicator* const group = served_for(comm, served_as, [&](const ServedCommunicator& members) {
    return is_legal(members) && !is_for_mpi(members);
  });
  if (group == nullptr) return kForCommunicator;
  if (count < 0) return kForArguments;
  if (!served_as.by_mpi) return left_to_mpi(*group, function, By::kMpiForElements);
  if (is_for_mpi(*group)) return left_to_mpi(*group, function, By::kMpiForSpeed);
  if (!is_legal(*group)) return kForArguments;
  const MpiReduction& reduction = *served_as.by_mpi;
  return carry_out_as(function, comm, [&] {
    const std::span<std::byte> all = gather_for(*group, reduction, with_own ? Made::kScan : Made::kExscan,
                                                input == MPI_IN_PLACE ? output : input);
    const auto ranks = static_cast<std::size_t>(group->rank) + (with_own ? 1 : 0);
    if (ranks > 0) combine(reduction, all.first(ranks * reduction.stride()), output);
  });
}

}  // namespace

template <class Count>
Outcome reduce(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  const ServedReduction served_as = served_reduction(type, op, count);
  const auto are_legal = [&](const ServedCommunicator& members) {
    if (count < 0 || !is_root_of(members, root)) return false;
    const bool is_root = members.rank == root;
    return input != nullptr && (!is_root || output != nullptr) && !is_misplaced(input, is_root) &&
           !is_misplaced(output, !is_root);
  };
  ServedCommunicator* const group = served_for(comm, served_as, are_legal);
  if (group == nullptr) return kForCommunicator;
  if (count < 0 || !is_root_of(*group, root)) return kForArguments;
  const bool is_legal = are_legal(*group);
  const bool is_root = group->rank == root;
  const std::byte* const from = bytes_at(is_root && input == MPI_IN_PLACE ? output : input);
  if (served_as.by_mpi) [[unlikely]] {
    const MpiReduction& reduction = *served_as.by_mpi;
    if (mpi_is_faster_by(reduction, group->size, true))
      return left_to_mpi(*group, "MPI_Reduce", By::kMpiForSpeed);
    if (!is_legal) return kForArguments;
    return carry_out_as("MPI_Reduce", comm, [&] {
      const std::span<std::byte> all = gather_for(*group, reduction, Made::kReduction, from, root);
      if (is_root) combine(reduction, all, output);
    });
  }
  if (served_as.by_kernel == nullptr) return left_to_mpi(*group, "MPI_Reduce", By::kMpiForElements);
  if (count == 0) return kDone;
  const Reduction& reduction = *served_as.by_kernel;
  const std::size_t elements = static_cast<std::size_t>(count) * reduction.numbers;
  const std::size_t bytes = elements * size_of(reduction.dtype);
  if (reduction.is_exact && mpi_is_faster(*group, bytes, bytes))
    return left_to_mpi(*group, "MPI_Reduce", By::kMpiForSpeed);
  if (!is_legal) return kForArguments;
  CollectiveCall call = call_of(CollectiveKind::kReduce, from, is_root ? bytes_at(output) : nullptr, elements,
                                reduction.dtype, root);
  call.op = reduction.op;
  return carry_out_as("MPI_Reduce", *group, comm, call);
}

template <class Count>
Outcome allreduce(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const ServedReduction served_as = served_reduction(type, op, count);
  // One buffer without MPI_IN_PLACE is an error.
  const bool is_legal = input != nullptr && output != nullptr && input != output && !is_misplaced(output);
  ServedCommunicator* const group =
      served_for(comm, served_as, [&](const ServedCommunicator&) { return count >= 0 && is_legal; });
  if (group == nullptr) return kForCommunicator;
  if (count < 0) return kForArguments;
  const std::byte* const from = bytes_at(input == MPI_IN_PLACE ? output : input);
  if (served_as.by_mpi) [[unlikely]] {
    const MpiReduction& reduction = *served_as.by_mpi;
    if (mpi_is_faster_by(reduction, group->size, false))
      return left_to_mpi(*group, "MPI_Allreduce", By::kMpiForSpeed);
    if (!is_legal) return kForArguments;
    return carry_out_as("MPI_Allreduce", comm, [&] {
      combine(reduction, gather_for(*group, reduction, Made::kReduction, from), output);
    });
  }
  if (served_as.by_kernel == nullptr) return left_to_mpi(*group, "MPI_Allreduce", By::kMpiForElements);
  if (count == 0) return kDone;
  if (!is_legal) return kForArguments;
  const Reduction& reduction = *served_as.by_kernel;
  CollectiveCall call = call_of(CollectiveKind::kAllReduce, from, bytes_at(output),
                                static_cast<std::size_t>(count) * reduction.numbers, reduction.dtype);
  call.op = reduction.op;
  return carry_out_as("MPI_Allreduce", *group, comm, call);
}

template <class Count>
Outcome reduce_scatter(const void* input, void* output, const Count* counts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  const ServedCommunicator* const group =
      served_for(comm, served_reduction(type, op, Count{0}),
                 [&](const ServedCommunicator&) { return counts != nullptr && input != output; });
  if (group == nullptr) return kForCommunicator;
  if (counts == nullptr) return kForArguments;
  const std::span<const Count> all(counts, static_cast<std::size_t>(group->size));
  if (std::ranges::adjacent_find(all, std::ranges::not_equal_to()) != all.end())
    return left_to_mpi(*group, "MPI_Reduce_scatter", By::kMpiForSizes);
  return reduce_scatter_block(input, output, counts[0], type, op, comm);
}

template <class Count>
Outcome reduce_scatter_block(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  const ServedReduction served_as = served_reduction(type, op, Count{0});
  const Reduction* const reduction = served_as.by_kernel;
  const bool is_legal = input != nullptr && output != nullptr && input != output && !is_misplaced(output);
  const ServedCommunicator* const group =
      served_for(comm, served_as, [&](const ServedCommunicator&) { return count >= 0 && is_legal; });
  if (group == nullptr) return kForCommunicator;
  if (count < 0) return kForArguments;
  if (reduction == nullptr) return left_to_mpi(*group, "MPI_Reduce_scatter_block", By::kMpiForElements);
  if (count == 0) return kDone;
  if (!is_legal) return kForArguments;
  const std::size_t elements = static_cast<std::size_t>(count) * reduction->numbers;
  const bool in_place = input == MPI_IN_PLACE;
  return carry_out_as("MPI_Reduce_scatter_block", comm, [&] {
    // In place the result goes to the beginning of the input, which others may still read.
    std::vector<std::byte> room(in_place ? elements * size_of(reduction->dtype) : 0);
    CollectiveCall call = call_of(CollectiveKind::kReduceScatter, bytes_at(in_place ? output : input),
                                  in_place ? room.data() : bytes_at(output), elements, reduction->dtype);
    call.op = reduction->op;
    carry_out(*group->communicator, call);
    if (in_place) std::memcpy(output, room.data(), room.size());
  });
}

template <class Count>
Outcome scan(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return scan_by("MPI_Scan", true, input, output, count, type, op, comm);
}

template <class Count>
Outcome exscan(const void* input, void* output, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return scan_by("MPI_Exscan", false, input, output, count, type, op, comm);
}

#define COHORT_REDUCING_CALLS(Count)                                                                 \
  template Outcome reduce(const void*, void*, Count, MPI_Datatype, MPI_Op, int, MPI_Comm);           \
  template Outcome allreduce(const void*, void*, Count, MPI_Datatype, MPI_Op, MPI_Comm);             \
  template Outcome reduce_scatter(const void*, void*, const Count*, MPI_Datatype, MPI_Op, MPI_Comm); \
  template Outcome reduce_scatter_block(const void*, void*, Count, MPI_Datatype, MPI_Op, MPI_Comm);  \
  template Outcome scan(const void*, void*, Count, MPI_Datatype, MPI_Op, MPI_Comm);                  \
  template Outcome exscan(const void*, void*, Count, MPI_Datatype, MPI_Op, MPI_Comm);
COHORT_REDUCING_CALLS(int)
COHORT_REDUCING_CALLS(MPI_Count)

}  // namespace cohort::preload
