// The collectives that can be measured, one record each.
#include <array>

#include "collective.h"
#include "mpi_team.h"
#include "timing.h"

namespace cohort::bench {

/// What data-parallel training does with its gradients at every step.
const Collective kAllReduce{
    .command = "all-reduce",
    .name = "all_reduce",
    .text = "combine every member's tensor element by element, on all members",
    .peer = "MPI_Allreduce",
    .nccl = "ncclAllReduce",
    .reduces = true,
    .in_place_by_default = true,
    .bus_factor = bus_factor_twice_across,
    .layout = [](const Role& role) -> Layout {
      return {.input = role.elements,
              .output = role.elements,
              .result = {{.source = ResultPart::kReduced, .first = 0, .elements = role.elements}}};
    },
    .call_mpi =
        [](const MpiCall& call) {
          check_mpi(MPI_Allreduce(call.input_or_in_place(), call.output, call.elements(), call.type, call.op,
                                  call.group),
                    "MPI_Allreduce");
        },
};

/// An all-reduce whose result only the root gets.
const Collective kReduce{
    .command = "reduce",
    .name = "reduce",
    .text = "combine every member's tensor element by element, on the root",
    .peer = "MPI_Reduce",
    .nccl = "ncclReduce",
    .reduces = true,
    .bus_factor = bus_factor_once,
    .layout = [](const Role& role) -> Layout {
      if (!role.is_root()) return {.input = role.elements};
      return {.input = role.elements,
              .output = role.elements,
              .result = {{.source = ResultPart::kReduced, .first = 0, .elements = role.elements}}};
    },
    .call_mpi =
        [](const MpiCall& call) {
          // Only the root may reduce in place; the others pass their input as usual.
          const void* input = call.role.is_root() ? call.input_or_in_place() : call.input;
          check_mpi(MPI_Reduce(input, call.output, call.elements(), call.type, call.op, kRoot, call.group),
                    "MPI_Reduce");
        },
};

/// How all members get the same initial weights.
const Collective kBroadcast{
    .command = "broadcast",
    .name = "broadcast",
    .text = "copy the root's tensor to all members",
    .peer = "MPI_Bcast",
    .nccl = "ncclBroadcast",
    .placement = Placement::kInPlaceOnly,
    .in_place_by_default = true,
    .bus_factor = bus_factor_once,
    .layout = [](const Role& role) -> Layout {
      return {.input = role.is_root() ? role.elements : 0,
              .output = role.elements,
              .result = {{.source = kRoot, .first = 0, .elements = role.elements}}};
    },
    .call_mpi =
        [](const MpiCall& call) {
          check_mpi(MPI_Bcast(call.output, call.elements(), call.type, kRoot, call.group), "MPI_Bcast");
        },
};

/// How members that each own a part of the weights get them all.
const Collective kAllGather{
    .command = "all-gather",
    .name = "all_gather",
    .text = "put the members' tensors one after the other, on all members",
    .peer = "MPI_Allgather",
    .nccl = "ncclAllGather",
    .divided = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = [](const Role& role) -> Layout {
      return {.input = role.block(),
              .output = role.elements,
              .offset = role.block_start(),
              .result = block_of_each(role)};
    },
    .call_mpi =
        [](const MpiCall& call) {
          check_mpi(MPI_Allgather(call.input_or_in_place(), call.block(), call.type, call.output,
                                  call.block(), call.type, call.group),
                    "MPI_Allgather");
        },
};

/// An all-gather of parts of different sizes, as of a last, smaller batch.
const Collective kAllGatherUneven{
    .command = "all-gather-uneven",
    .name = "all_gather_uneven",
    .text = "the same with tensors of different sizes: rank r has r + 1 shares",
    .peer = "MPI_Allgatherv",
    .nccl = "ncclBroadcast",
    .bus_factor = bus_factor_all_but_own,
    .layout = [](const Role& role) -> Layout {
      const std::vector<std::size_t> counts = uneven_counts(role);
      Layout layout{.output = role.elements};
      for (int member = 0; member < role.members; ++member) {
        const std::size_t count = counts[static_cast<std::size_t>(member)];
        if (member < role.member) layout.offset += count;
        if (member == role.member) layout.input = count;
        layout.result.push_back({.source = member, .first = 0, .elements = count});
      }
      return layout;
    },
    .call_mpi =
        [](const MpiCall& call) {
          const int count = call.counts[static_cast<std::size_t>(call.role.member)];
          check_mpi(MPI_Allgatherv(call.input_or_in_place(), count, call.type, call.output,
                                   call.counts.data(), call.offsets.data(), call.type, call.group),
                    "MPI_Allgatherv");
        },
};

/// What an optimizer that is divided among the members needs of the gradients.
const Collective kReduceScatter{
    .command = "reduce-scatter",
    .name = "reduce_scatter",
    .text = "combine as all-reduce, but leave each member only its block of the result",
    .peer = "MPI_Reduce_scatter_block",
    .nccl = "ncclReduceScatter",
    .reduces = true,
    .divided = true,
    .mpi_result_first = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = [](const Role& role) -> Layout {
      return {.input = role.elements,
              .output = role.block(),
              .offset = role.block_start(),
              .result = {
                  {.source = ResultPart::kReduced, .first = role.block_start(), .elements = role.block()}}};
    },
    .call_mpi =
        [](const MpiCall& call) {
          check_mpi(MPI_Reduce_scatter_block(call.input_or_in_place(), call.output, call.block(), call.type,
                                             call.op, call.group),
                    "MPI_Reduce_scatter_block");
        },
};

/// How tokens reach their experts.
const Collective kAllToAll{
    .command = "all-to-all",
    .name = "all_to_all",
    .text = "send block s of each member's tensor to member s",
    .peer = "MPI_Alltoall",
    .nccl = "ncclSend+ncclRecv",
    .divided = true,
    .placement = Placement::kOutOfPlaceOnly,
    .bus_factor = bus_factor_all_but_own,
    .layout = [](const Role& role) -> Layout {
      Layout layout{.input = role.elements, .output = role.elements};
      for (int member = 0; member < role.members; ++member) {
        layout.result.push_back({.source = member, .first = role.block_start(), .elements = role.block()});
      }
      return layout;
    },
    .call_mpi =
        [](const MpiCall& call) {
          check_mpi(MPI_Alltoall(call.input, call.block(), call.type, call.output, call.block(), call.type,
                                 call.group),
                    "MPI_Alltoall");
        },
};

/// An all-gather whose result only the root gets.
const Collective kGather{
    .command = "gather",
    .name = "gather",
    .text = "put the members' tensors one after the other, on the root",
    .peer = "MPI_Gather",
    .nccl = "ncclSend+ncclRecv",
    .divided = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = [](const Role& role) -> Layout {
      if (!role.is_root()) return {.input = role.block()};
      return {.input = role.block(),
              .output = role.elements,
              .offset = role.block_start(),
              .result = block_of_each(role)};
    },
    .call_mpi =
        [](const MpiCall& call) {
          const void* input = call.role.is_root() ? call.input_or_in_place() : call.input;
          check_mpi(MPI_Gather(input, call.block(), call.type, call.output, call.block(), call.type, kRoot,
                               call.group),
                    "MPI_Gather");
        },
};

/// How a root hands out the parts of a batch.
const Collective kScatter{
    .command = "scatter",
    .name = "scatter",
    .text = "send block r of the root's tensor to member r",
    .peer = "MPI_Scatter",
    .nccl = "ncclSend+ncclRecv",
    .divided = true,
    .bus_factor = bus_factor_all_but_own,
    .layout = [](const Role& role) -> Layout {
      return {.input = role.is_root() ? role.elements : 0,
              .output = role.block(),
              .offset = role.is_root() ? role.block_start() : 0,
              .result = {{.source = kRoot, .first = role.block_start(), .elements = role.block()}}};
    },
    .call_mpi =
        [](const MpiCall& call) {
          void* output = call.in_place && call.role.is_root() ? MPI_IN_PLACE : call.output;
          check_mpi(MPI_Scatter(call.input, call.block(), call.type, output, call.block(), call.type, kRoot,
                                call.group),
                    "MPI_Scatter");
        },
};

/// Moves no data: it measures latency alone.
const Collective kBarrier{
    .command = "barrier",
    .name = "barrier",
    .text = "wait until every member has arrived",
    .peer = "MPI_Barrier",
    .placement = Placement::kNoBuffers,
    .bus_factor = bus_factor_none,
    .layout = [](const Role& /*role*/) -> Layout { return {}; },
    .call_mpi = [](const MpiCall& call) { check_mpi(MPI_Barrier(call.group), "MPI_Barrier"); },
};

std::span<const Collective* const> collectives() {
  static constexpr std::array kAll{&kAllReduce,     &kReduce,   &kBroadcast, &kAllGather, &kAllGatherUneven,
                                   &kReduceScatter, &kAllToAll, &kGather,    &kScatter,   &kBarrier};
  return kAll;
}

}  // namespace cohort::bench
