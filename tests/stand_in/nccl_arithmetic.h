// The reductions of the NCCL stand-in: in the order of the ranks, 16-bit floats rounded once.
#pragma once

#include <cstddef>
#include <vector>

#include <nccl.h>

namespace nccl_stand_in {

[[nodiscard]] std::size_t size_of(ncclDataType_t type);

/// output[i] = inputs[0][i] op inputs[1][i] op ...; an average is divided by the number of inputs.
void reduce(const std::vector<const std::byte*>& inputs, void* output, std::size_t count, ncclDataType_t type,
            ncclRedOp_t op);

}  // namespace nccl_stand_in
