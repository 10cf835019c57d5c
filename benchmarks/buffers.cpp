#include "buffers.h"

#include "agreed_error.h"
#include "memory.h"
#include "mpi_group.h"

namespace cohort::bench {
namespace {

/// Memory that is only promised is taken when it is written to, from whoever has it; so what the
/// members of a node will want is compared with what there is. A library may copy a whole buffer while
/// it works, hence one set more than those that are allocated here, and a tenth for the rest.
void require_memory(const Collective& collective, const Problem& problem, bool with_peer) {
  const std::size_t elements = collective.in_place
                                   ? collective.input_elements(problem)
                                   : collective.input_elements(problem) + collective.output_elements(problem);
  const int sets = with_peer ? 3 : 2;
  const double wanted = 1.1 * sets * problem.members_on_node * static_cast<double>(elements) *
                        static_cast<double>(size_of(problem.dtype));
  const std::optional<std::size_t> available = available_memory();
  if (available && wanted > static_cast<double>(*available)) throw Unavailable("too little memory");
}

Buffers allocate(const Collective& collective, const Problem& problem, bool with_peer) {
  require_memory(collective, problem, with_peer);
  const auto tensor = [&](std::size_t elements) {
    return Tensor::uninitialized({static_cast<std::int64_t>(elements)}, problem.dtype);
  };
  Buffers buffers;
  buffers.input = tensor(collective.input_elements(problem));
  buffers.output = collective.in_place ? buffers.input : tensor(collective.output_elements(problem));
  if (with_peer) buffers.peer_input.emplace(buffers.input.bytes());
  if (with_peer && !collective.in_place) buffers.peer_output.emplace(buffers.output.bytes());
  return buffers;
}

}  // namespace

Buffers allocate_on_all_ranks(const Collective& collective, const Problem& problem, bool with_peer,
                              const MpiGroup& group) {
  std::optional<Buffers> buffers;
  try {
    buffers.emplace(allocate(collective, problem, with_peer));
  } catch (const Unavailable&) {
    // The text below says more than this rank knows.
  }
  const std::uint64_t without = group.sum(buffers ? 0 : 1);
  if (without > 0) {
    throw AgreedError("{} of {} members have no memory for buffers of {} bytes: lower the maximum of --sizes",
                      without, problem.members, problem.elements * size_of(problem.dtype));
  }
  return *std::move(buffers);
}

}  // namespace cohort::bench
