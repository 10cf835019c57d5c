#include "local_execution.h"

#include <vector>

#include <cohort/collective/copy_bytes.h>
#include <cohort/collective/reduction.h>

namespace cohort {
namespace {

std::size_t block_bytes(const CollectiveCall& call) { return call.elements * size_of(call.dtype); }

std::vector<const std::byte*> inputs_at(std::span<const CollectiveCall> calls, std::size_t offset) {
  std::vector<const std::byte*> inputs;
  for (const CollectiveCall& call : calls) inputs.push_back(call.input + offset);
  return inputs;
}

void reduce_to(std::span<const CollectiveCall> calls, std::byte* output) {
  const CollectiveCall& call = calls.front();
  reduce_elements(call.dtype, call.op, inputs_at(calls, 0), output, call.elements);
}

void all_reduce(std::span<const CollectiveCall> calls) {
  // Member 0's output may be its input; the others' inputs are read before their outputs are written.
  reduce_to(calls, calls.front().output);
  for (const CollectiveCall& call : calls) copy_bytes(call.output, calls.front().output, block_bytes(call));
}

void broadcast(std::span<const CollectiveCall> calls) {
  const CollectiveCall& root = calls[static_cast<std::size_t>(calls.front().root)];
  for (const CollectiveCall& call : calls) copy_bytes(call.output, root.input, block_bytes(call));
}

void gather_to(std::span<const CollectiveCall> calls, std::byte* output) {
  for (const CollectiveCall& call : calls) {
    copy_bytes(output, call.input, block_bytes(call));
    output += block_bytes(call);
  }
}

void all_gather(std::span<const CollectiveCall> calls) {
  for (const CollectiveCall& call : calls) gather_to(calls, call.output);
}

void reduce_scatter(std::span<const CollectiveCall> calls) {
  // In place, member r's output is block r of its input, which only this round reads.
  for (std::size_t member = 0; member < calls.size(); ++member) {
    const CollectiveCall& call = calls[member];
    reduce_elements(call.dtype, call.op, inputs_at(calls, member * block_bytes(call)), call.output,
                    call.elements);
  }
}

void all_to_all(std::span<const CollectiveCall> calls) {
  for (std::size_t from = 0; from < calls.size(); ++from) {
    for (std::size_t to = 0; to < calls.size(); ++to) {
      const std::size_t bytes = block_bytes(calls[from]);
      copy_bytes(calls[to].output + from * bytes, calls[from].input + to * bytes, bytes);
    }
  }
}

void scatter(std::span<const CollectiveCall> calls) {
  const std::byte* input = calls[static_cast<std::size_t>(calls.front().root)].input;
  for (const CollectiveCall& call : calls) {
    copy_bytes(call.output, input, block_bytes(call));
    input += block_bytes(call);
  }
}

}  // namespace

void execute_locally(std::span<const CollectiveCall> calls) {
  const auto root = static_cast<std::size_t>(calls.front().root);
  switch (calls.front().kind) {
    case CollectiveKind::kAllReduce: return all_reduce(calls);
    case CollectiveKind::kReduce: return reduce_to(calls, calls[root].output);
    case CollectiveKind::kBroadcast: return broadcast(calls);
    case CollectiveKind::kAllGather: return all_gather(calls);
    case CollectiveKind::kReduceScatter: return reduce_scatter(calls);
    case CollectiveKind::kAllToAll: return all_to_all(calls);
    case CollectiveKind::kGather: return gather_to(calls, calls[root].output);
    case CollectiveKind::kScatter: return scatter(calls);
    case CollectiveKind::kBarrier: return;
    case CollectiveKind::kSend:
    case CollectiveKind::kReceive: break;
  }
  throw Internal("{} is not a collective of all members", to_string(calls.front().kind));
}

}  // namespace cohort
