#include "buffers.h"

#include <algorithm>
#include <new>

#include <cohort/device/tensor.h>

#include "device/memory_limits.h"
#include "errors.h"

namespace cohort::bench {
namespace {

/// The system promises more memory than it has, and what is missing shows only on writing. So the demand of
/// all members of the node is compared with what is available: the buffers that are allocated here, one set
/// more, since a library may copy a whole buffer while it works, and a tenth for the rest.
void require_memory(const BufferRequest& request, DType dtype) {
  const Layout& layout = request.layout;
  const std::size_t elements =
      request.in_place ? std::max(layout.input, layout.output) : layout.input + layout.output;
  const int sets = request.with_peer ? 3 : 2;
  const double wanted = 1.1 * sets * request.members_on_node * static_cast<double>(elements) *
                        static_cast<double>(size_of(dtype));
  if (wanted > static_cast<double>(available_memory())) throw Unavailable("too little memory");
}

/// In place, where input and output begin within the memory that the larger of them fills.
struct Starts {
  std::size_t input = 0;
  std::size_t output = 0;
};

Starts starts_in_place(const Layout& layout) {
  if (layout.input < layout.output) return {.input = layout.offset};
  return {.output = layout.offset};
}

struct Pair {
  Tensor input;
  Tensor output;
};

/// `make(elements)` makes a tensor.
template <class Make>
Pair allocate_pair(const BufferRequest& request, Make make) {
  const Layout& layout = request.layout;
  if (!request.in_place) return {make(layout.input), make(layout.output)};
  const Tensor whole = make(std::max(layout.input, layout.output));
  const auto part = [&](std::size_t start, std::size_t elements) {
    return whole.rows(static_cast<std::int64_t>(start), static_cast<std::int64_t>(start + elements));
  };
  const Starts starts = starts_in_place(layout);
  return {part(starts.input, layout.input), part(starts.output, layout.output)};
}

Buffers allocate_for_cohort(const BufferRequest& request, const RunOptions& options) {
  const Pair host =
      allocate_pair(request, [&](std::size_t elements) { return make_tensor(elements, options); });
  if (is_cpu(request.device)) return {host.input, host.output, host.input, host.output, {}};
  const Pair there = allocate_pair(request, [&](std::size_t elements) {
    return Tensor::uninitialized({static_cast<std::int64_t>(elements)}, options.dtype, request.device);
  });
  return {there.input, there.output, host.input, host.output, {}};
}

PeerBuffers allocate_for_peer(const BufferRequest& request, const RunOptions& options) {
  const std::size_t size = size_of(options.dtype);
  const std::size_t input = request.layout.input * size;
  const std::size_t output = request.layout.output * size;
  PeerBuffers buffers;
  if (!request.in_place) {
    buffers.input_memory = std::make_unique<PrivateMemory>(input, options.huge_pages);
    buffers.output_memory = std::make_unique<PrivateMemory>(output, options.huge_pages);
    buffers.input = buffers.input_memory->bytes();
    buffers.output = buffers.output_memory->bytes();
    return buffers;
  }
  buffers.input_memory = std::make_unique<PrivateMemory>(std::max(input, output), options.huge_pages);
  Starts starts = starts_in_place(request.layout);
  if (request.collective->mpi_result_first) starts.output = 0;
  buffers.input = buffers.input_memory->bytes().subspan(starts.input * size, input);
  buffers.output = buffers.input_memory->bytes().subspan(starts.output * size, output);
  return buffers;
}

}  // namespace

Tensor make_tensor(std::size_t elements, const RunOptions& options) {
  const Shape shape{static_cast<std::int64_t>(elements)};
  if (options.memory == MemoryKind::kHeap) return Tensor::uninitialized(shape, options.dtype);
  auto memory = std::make_shared<PrivateMemory>(elements * size_of(options.dtype), options.huge_pages);
  const std::span<std::byte> bytes = memory->bytes();
  return Tensor::wrap(std::make_shared<const Buffer>(bytes.data(), bytes.size(), Device(), std::move(memory)),
                      0, shape, options.dtype);
}

Buffers allocate_on_all_members(const BufferRequest& request, const RunOptions& options, const Team& team) {
  std::optional<Buffers> buffers;
  try {
    require_memory(request, options.dtype);
    buffers = allocate_for_cohort(request, options);
    if (request.with_peer) buffers->peer = allocate_for_peer(request, options);
  } catch (const Unavailable&) {  // the text below says more than this member knows
    buffers.reset();
  } catch (const std::bad_alloc&) {
    buffers.reset();
  }
  const std::uint64_t without = team.sum(buffers ? 0 : 1);
  if (without > 0) {
    throw AgreedError(
        "{} of the members have no memory for buffers of {} bytes: lower the maximum of --sizes", without,
        std::max(request.layout.input, request.layout.output) * size_of(options.dtype));
  }
  return *std::move(buffers);
}

}  // namespace cohort::bench
