#include "buffer_exchange.h"

#include <algorithm>

#include <cohort/torch/tensor.h>

namespace cohort::libtorch {

PackedBuffers::PackedBuffers(Communicator& communicator, std::span<const NamedTensor> buffers,
                             BufferExchange exchange)
    : communicator_(communicator) {
  if (exchange == BufferExchange::kNone || communicator.size() == 1) return;
  for (const auto& [name, buffer, more_names] : buffers) {
    const DType dtype = to_cohort(buffer.scalar_type());
    auto pack = std::ranges::find(packs_, dtype, [](const Pack& made) { return made.memory.dtype(); });
    if (pack == packs_.end()) {
      const bool is_mean = exchange == BufferExchange::kMean && is_floating(dtype);
      pack = packs_.insert(packs_.end(), {Tensor::uninitialized({0}, dtype), {}, {}, is_mean});
    }
    pack->buffers.push_back(buffer.detach());
  }
  for (Pack& pack : packs_) {
    std::int64_t elements = 0;
    for (const at::Tensor& buffer : pack.buffers) elements += buffer.numel();
    pack.memory = Tensor::uninitialized({elements}, pack.memory.dtype());
    const at::Tensor whole = to_torch(pack.memory);
    std::int64_t begin = 0;
    for (const at::Tensor& buffer : pack.buffers) {
      pack.places.push_back(whole.narrow(0, begin, buffer.numel()).view(buffer.sizes()));
      begin += buffer.numel();
    }
  }
}

void PackedBuffers::start(int root, bool counts) {
  for (Pack& pack : packs_) {
    if (pack.is_mean && !counts)
      pack.memory.fill(0);
    else
      for (std::size_t i = 0; i < pack.buffers.size(); ++i) pack.places[i].copy_(pack.buffers[i]);
    works_.push_back(pack.is_mean ? communicator_.all_reduce_async(pack.memory, ReduceOp::kMean)
                                  : communicator_.broadcast_async(pack.memory, root));
  }
}

void PackedBuffers::finish(double scale) {
  for (Work& work : works_) work.wait();
  works_.clear();
  for (Pack& pack : packs_) {
    for (std::size_t i = 0; i < pack.buffers.size(); ++i) {
      pack.buffers[i].copy_(pack.places[i]);
      if (pack.is_mean && scale != 1) pack.buffers[i].mul_(scale);
    }
  }
}

}  // namespace cohort::libtorch
