#include "module_state.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <cohort/base/fingerprint.h>
#include <cohort/torch/tensor.h>

#include "base/vote.h"

namespace cohort::libtorch {
namespace {

template <class Dictionary>
std::vector<NamedTensor> named(const Dictionary& dictionary) {
  std::vector<NamedTensor> tensors;
  std::unordered_map<const c10::TensorImpl*, std::size_t> known;
  for (const auto& item : dictionary) {
    const at::Tensor& tensor = item.value();
    if (!tensor.defined()) continue;
    const auto [entry, is_new] = known.try_emplace(tensor.unsafeGetTensorImpl(), tensors.size());
    if (is_new)
      tensors.push_back({item.key(), tensor});
    else
      tensors[entry->second].more_names.push_back(item.key());
  }
  return tensors;
}

/// A line for each tensor.
std::string listed(std::span<const NamedTensor> parameters, std::span<const NamedTensor> buffers) {
  std::string text;
  const auto add = [&](const char* kind, std::span<const NamedTensor> tensors) {
    for (const auto& [name, tensor, more_names] : tensors)
      text +=
          fmt::format("{} '{}' {}{}{}\n", kind, name, describe(spec_of(tensor)),
                      tensor.requires_grad() ? " with a gradient" : "",
                      more_names.empty() ? "" : fmt::format(", also '{}'", fmt::join(more_names, "', '")));
  };
  add("parameter", parameters);
  add("buffer", buffers);
  return text;
}

/// By member. All are as long as the longest, filled with zeros, on the way.
std::vector<std::string> gathered(Communicator& communicator, const std::string& own) {
  const Tensor longest = Tensor::scalar(static_cast<std::int64_t>(own.size())).reshape({1});
  communicator.all_reduce(longest, ReduceOp::kMax);
  const auto length = longest.item<std::int64_t>();
  const Tensor mine = Tensor::zeros({length}, DType::kUInt8);
  std::ranges::copy(own, reinterpret_cast<char*>(mine.data()));
  const Tensor all = Tensor::uninitialized({communicator.size() * length}, DType::kUInt8);
  communicator.all_gather(mine, all);
  std::vector<std::string> texts;
  for (int member = 0; member < communicator.size(); ++member) {
    const auto* begin = reinterpret_cast<const char*>(all.data()) + member * length;
    texts.emplace_back(begin, std::find(begin, begin + length, '\0'));
  }
  return texts;
}

}  // namespace

std::vector<NamedTensor> parameters_of(const torch::nn::Module& module) {
  return named(module.named_parameters());
}

std::vector<NamedTensor> buffers_of(const torch::nn::Module& module) { return named(module.named_buffers()); }

void require_equal_lists(Communicator& communicator, std::span<const NamedTensor> parameters,
                         std::span<const NamedTensor> buffers) {
  const std::vector<std::string> lists = gathered(communicator, listed(parameters, buffers));
  const Vote vote = count_votes(lists);
  if (vote.is_unanimous()) return;
  std::string odd;
  for (const std::size_t member : vote.odd) {
    const auto [here, there] = first_difference(lists[member], lists[vote.usual], "no more");
    odd += fmt::format("; {} has {}, where the others have {}",
                       describe(static_cast<int>(member), communicator.members()[member]), here, there);
  }
  throw InvalidArgument(
      "DistributedModel: the workers' modules differ{}; make the same module on all workers", odd);
}

void broadcast(Communicator& communicator, std::span<const NamedTensor> tensors, int root) {
  for (const auto& [name, tensor, more_names] : tensors) {
    const at::Tensor contiguous = tensor.detach().contiguous();
    communicator.broadcast(to_cohort(contiguous), root);
    if (!contiguous.is_alias_of(tensor)) tensor.detach().copy_(contiguous);
  }
}

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
