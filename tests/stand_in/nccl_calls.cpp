#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include "nccl_comm.h"
#include "nccl_exchange.h"
#include "nccl_stand_in.h"

namespace nccl_stand_in {
namespace {

using Buffer = std::vector<std::byte>;

/// The calls of this thread since its ncclGroupStart, by communicator.
struct Group {
  int depth = 0;
  struct Calls {
    Exchange exchange;
    cudaStream_t stream = nullptr;
  };
  std::map<ncclComm_t, Calls> calls;
};
thread_local Group group;

ncclResult_t end_group() {
  if (group.depth > 0) return ncclSuccess;
  bool blocks = true;
  for (auto& [comm, calls] : group.calls) {
    comm->launch(std::move(calls.exchange), calls.stream);
    blocks &= comm->blocking;
  }
  group.calls.clear();
  return blocks ? ncclSuccess : ncclInProgress;
}

/// Adds to what this thread collects. `describe(exchange)` says what moves.
template <class Describe>
ncclResult_t add(ncclComm_t comm, cudaStream_t stream, Describe describe) {
  if (comm->is_busy()) return comm->refuse(ncclInvalidArgument, "the communicator is in progress");
  Group::Calls& calls = group.calls[comm];
  calls.stream = stream;
  describe(calls.exchange);
  return end_group();
}

int size_of_group(ncclComm_t comm) { return comm->state->arena->size(); }
int rank_in_group(ncclComm_t comm) { return comm->state->arena->rank(); }

const std::byte* block(const void* begin, int number, std::size_t bytes) {
  return static_cast<const std::byte*>(begin) + static_cast<std::size_t>(number) * bytes;
}
std::byte* block(void* begin, int number, std::size_t bytes) {
  return static_cast<std::byte*>(begin) + static_cast<std::size_t>(number) * bytes;
}

/// Receives a block of every rank, and reduces them to `output` in the end.
void receive_reduced(Exchange& exchange, ncclComm_t comm, void* output, std::size_t count,
                     ncclDataType_t type, ncclRedOp_t op) {
  const std::size_t bytes = count * size_of(type);
  const auto rooms =
      std::make_shared<std::vector<Buffer>>(static_cast<std::size_t>(size_of_group(comm)), Buffer(bytes));
  if (bytes > 0) exchange.results.push_back(output);
  for (int rank = 0; rank < size_of_group(comm); ++rank)
    exchange.receive(rank, (*rooms)[static_cast<std::size_t>(rank)].data(), bytes);
  exchange.conclusions.emplace_back([=] {
    std::vector<const std::byte*> inputs;
    for (const Buffer& room : *rooms) inputs.push_back(room.data());
    reduce(inputs, output, count, type, op);
  });
}

}  // namespace
}  // namespace nccl_stand_in

using namespace nccl_stand_in;

#pragma GCC visibility push(default)
extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const char* const claimed = std::getenv("NCCL_STAND_IN_VERSION");
  *version = claimed == nullptr ? NCCL_VERSION_CODE : std::atoi(claimed);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = {};
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "/nccl_stand_in.%08x%08x", random(), random());
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclSystemError: return "unhandled system error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    default: return "an error that the stand-in does not name";
  }
}

const char* ncclGetLastError(ncclComm_t comm) {
  thread_local std::string text;
  if (comm == nullptr) return "";
  const std::lock_guard lock(comm->state->mutex);
  text = comm->state->last_error;
  return text.c_str();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (size < 1 || size > kMostRanks || rank < 0 || rank >= size) return ncclInvalidArgument;
  *comm = new ncclComm(config->blocking != 0);
  (*comm)->meet(id.internal, rank, size);
  if (!(*comm)->blocking) return ncclInProgress;
  const ncclResult_t result = (*comm)->wait_for_meeting();
  if (result != ncclSuccess) delete std::exchange(*comm, nullptr);
  return result;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* result, ncclConfig_t*) {
  if (comm->is_busy()) return comm->refuse(ncclInvalidArgument, "the communicator is in progress");
  if (comm->state->running > 0) give_up("ncclCommSplit with operations outstanding");
  comm->split(color, key, result);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->progress();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (comm->is_busy()) return comm->refuse(ncclInvalidArgument, "the communicator is in progress");
  if (comm->state->running > 0) give_up("ncclCommFinalize with operations outstanding");
  comm->finalize();
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->close();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->abort();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  --group.depth;
  return end_group();
}

ncclResult_t ncclAllReduce(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, [&](Exchange& exchange) {
    for (int rank = 0; rank < size_of_group(comm); ++rank)
      exchange.send(rank, input, count * nccl_stand_in::size_of(type));
    receive_reduced(exchange, comm, output, count, type, op);
  });
}

ncclResult_t ncclReduce(const void* input, void* output, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, [&](Exchange& exchange) {
    exchange.send(root, input, count * nccl_stand_in::size_of(type));
    if (rank_in_group(comm) == root) receive_reduced(exchange, comm, output, count, type, op);
  });
}

ncclResult_t ncclReduceScatter(const void* input, void* output, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, [&](Exchange& exchange) {
    const std::size_t bytes = count * nccl_stand_in::size_of(type);
    for (int rank = 0; rank < size_of_group(comm); ++rank)
      exchange.send(rank, block(input, rank, bytes), bytes);
    receive_reduced(exchange, comm, output, count, type, op);
  });
}

ncclResult_t ncclBroadcast(const void* input, void* output, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, [&](Exchange& exchange) {
    const std::size_t bytes = count * nccl_stand_in::size_of(type);
    for (int rank = 0; rank_in_group(comm) == root && rank < size_of_group(comm); ++rank)
      exchange.send(rank, input, bytes);
    exchange.receive(root, output, bytes);
  });
}

ncclResult_t ncclAllGather(const void* input, void* output, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return add(comm, stream, [&](Exchange& exchange) {
    const std::size_t bytes = count * nccl_stand_in::size_of(type);
    for (int rank = 0; rank < size_of_group(comm); ++rank) {
      exchange.send(rank, input, bytes);
      exchange.receive(rank, block(output, rank, bytes), bytes);
    }
  });
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream,
             [&](Exchange& exchange) { exchange.send(peer, data, count * nccl_stand_in::size_of(type)); });
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add(comm, stream,
             [&](Exchange& exchange) { exchange.receive(peer, data, count * nccl_stand_in::size_of(type)); });
}

}  // extern "C"
#pragma GCC visibility pop
