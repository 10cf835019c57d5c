#include "eager.h"

#include <cstring>
#include <vector>

#include <cohort/collective/reduction.h>

namespace cohort::mpi {
namespace {

/// Elements of an all-gather's result.
std::size_t gathered_elements(const CollectiveCall& call, int members) {
  if (call.counts.empty()) return call.elements * static_cast<std::size_t>(members);
  std::size_t total = 0;
  for (const std::size_t count : call.counts) total += count;
  return total;
}

}  // namespace

bool is_eager(const CollectiveCall& call, int members) {
  const std::size_t limit = kEagerBytes / size_of(call.dtype);
  switch (call.kind) {
    case CollectiveKind::kBarrier: return true;
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBroadcast: return call.elements <= limit;
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather: return gathered_elements(call, members) <= limit;
    default: return false;
  }
}

std::span<const std::byte> eager_contribution(const CollectiveCall& call, int rank) {
  if (call.kind == CollectiveKind::kBarrier) return {};
  if (call.kind == CollectiveKind::kBroadcast && call.root != rank) return {};
  return {call.input, call.elements * size_of(call.dtype)};
}

std::span<const std::byte> eager_result(const CollectiveCall& call,
                                        std::span<const std::span<const std::byte>> contributions,
                                        std::span<std::byte> result) {
  switch (call.kind) {
    case CollectiveKind::kBroadcast: return contributions[static_cast<std::size_t>(call.root)];
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce: {
      std::vector<const std::byte*> inputs;
      inputs.reserve(contributions.size());
      for (const auto& contribution : contributions) inputs.push_back(contribution.data());
      reduce_elements(call.dtype, call.op, inputs, result.data(), call.elements);
      return result.first(call.elements * size_of(call.dtype));
    }
    case CollectiveKind::kSplit:
    case CollectiveKind::kAllGather: {
      std::size_t end = 0;
      for (const auto& contribution : contributions) {
        if (!contribution.empty()) std::memcpy(result.data() + end, contribution.data(), contribution.size());
        end += contribution.size();
      }
      return result.first(end);
    }
    default: return {};
  }
}

void take_eager_result(const CollectiveCall& call, int rank, std::span<const std::byte> result) {
  const bool is_source = call.kind == CollectiveKind::kBroadcast && call.root == rank;
  if (call.output == nullptr || result.empty() || is_source) return;
  std::memcpy(call.output, result.data(), result.size());
}

}  // namespace cohort::mpi
