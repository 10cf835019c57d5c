// All-reduce in place: what data-parallel training does with its gradients at every step.
#include "bandwidth.h"
#include "collective.h"
#include "mpi_group.h"
#include "mpi_types.h"

namespace cohort::bench {
namespace {

std::size_t whole_tensor(const Problem& problem) { return problem.elements; }

void run(Communicator& communicator, const Problem& problem, const Tensor& input, const Tensor& output) {
  communicator.all_reduce(input, output, problem.op);
}

std::string why_no_peer(const Problem& problem) {
  return why_mpi_cannot_reduce(problem.dtype, problem.op, problem.elements);
}

void run_peer(const MpiGroup& group, const Problem& problem, std::span<std::byte> /*input*/,
              std::span<std::byte> output) {
  const MpiReduction types = mpi_reduction(problem.dtype, problem.op).value();
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, output.data(), static_cast<int>(problem.elements), types.type,
                          types.op, group.handle()),
            "MPI_Allreduce");
}

void write_input(const ExactValues& values, std::span<std::byte> input) { values.write(input); }

std::uint64_t count_wrong(const ExactValues& values, std::span<const std::byte> output) {
  return values.count_wrong(output);
}

}  // namespace

const Collective kAllReduce{
    .command = "all-reduce",
    .name = "all_reduce",
    .text = "combine every member's tensor element by element, in place, on all members",
    .peer = "MPI_Allreduce",
    .in_place = true,
    .bus_factor = all_reduce_bus_factor,
    .input_elements = whole_tensor,
    .output_elements = whole_tensor,
    .run = run,
    .why_no_peer = why_no_peer,
    .run_peer = run_peer,
    .write_input = write_input,
    .count_wrong = count_wrong,
};

}  // namespace cohort::bench
