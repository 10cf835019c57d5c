#include "calls.h"

#include <string>

#include <fmt/format.h>

#include <cohort/base/error.h>

#include "open_library.h"

namespace cohort::nccl::calls {
namespace {

const Functions& nccl() { return open_library().functions; }

ErrorCode code_of(ncclResult_t result) {
  switch (result) {
    case ncclSystemError:
    case ncclRemoteError: return ErrorCode::kUnavailable;
    default: return ErrorCode::kInternal;
  }
}

[[noreturn]] void throw_failed(ncclResult_t result, const std::string& what, ncclComm_t comm) {
  const char* const last = nccl().ncclGetLastError(comm);
  const std::string details = last == nullptr || *last == '\0' ? "" : fmt::format("; it last said: {}", last);
  throw_error(code_of(result), fmt::format("{}: {}{}. NCCL_DEBUG=INFO makes NCCL say more (NCCL {} from {})",
                                           what, nccl().ncclGetErrorString(result), details,
                                           version_text(open_library().version), open_library().path));
}

/// Calls of communicators that do not block say "in progress" for what they have begun.
void require_begun(ncclResult_t result, const char* call, ncclComm_t comm) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw_failed(result, fmt::format("{} failed", call), comm);
}

}  // namespace

// The call as written is part of the message.
#define COHORT_NCCL(call, comm) require_begun(nccl().call, #call, comm)

ncclUniqueId unique_id() {
  ncclUniqueId id{};
  COHORT_NCCL(ncclGetUniqueId(&id), nullptr);
  return id;
}

ncclComm_t init(int size, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  ncclComm_t comm = nullptr;
  COHORT_NCCL(ncclCommInitRankConfig(&comm, size, id, rank, &config), nullptr);
  return comm;
}

ncclComm_t begin_init(int size, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = nullptr;
  COHORT_NCCL(ncclCommInitRankConfig(&comm, size, id, rank, &config), nullptr);
  return comm;
}

void begin_split(ncclComm_t comm, int color, int key, ncclComm_t& group) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  COHORT_NCCL(ncclCommSplit(comm, color, key, &group, &config), comm);
}

bool is_settled(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  COHORT_NCCL(ncclCommGetAsyncError(comm, &state), comm);
  if (state == ncclInProgress) return false;
  if (state != ncclSuccess) throw_failed(state, "NCCL reports an error", comm);
  return true;
}

void begin_finalize(ncclComm_t comm) { COHORT_NCCL(ncclCommFinalize(comm), comm); }

void destroy(ncclComm_t comm) noexcept { static_cast<void>(nccl().ncclCommDestroy(comm)); }

void abort(ncclComm_t comm) noexcept { static_cast<void>(nccl().ncclCommAbort(comm)); }

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)

void* mem_alloc(std::size_t bytes) {
  void* memory = nullptr;
  COHORT_NCCL(ncclMemAlloc(&memory, bytes), nullptr);
  return memory;
}

void mem_free(void* memory) noexcept { static_cast<void>(nccl().ncclMemFree(memory)); }

void* register_memory(ncclComm_t comm, void* data, std::size_t bytes) {
  void* registration = nullptr;
  COHORT_NCCL(ncclCommRegister(comm, data, bytes, &registration), comm);
  return registration;
}

void deregister(ncclComm_t comm, void* registration) noexcept {
  static_cast<void>(nccl().ncclCommDeregister(comm, registration));
}

#else

void* mem_alloc(std::size_t /*bytes*/) { throw Internal("this header of NCCL has no memory"); }
void mem_free(void* /*memory*/) noexcept {}
void* register_memory(ncclComm_t /*comm*/, void* /*data*/, std::size_t /*bytes*/) {
  throw Internal("this header of NCCL has no registrations");
}
void deregister(ncclComm_t /*comm*/, void* /*registration*/) noexcept {}

#endif

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)

void begin_window(ncclComm_t comm, void* data, std::size_t bytes, Window& window) {
  COHORT_NCCL(ncclCommWindowRegister(comm, data, bytes, &window, NCCL_WIN_COLL_SYMMETRIC), comm);
}

void close_window(ncclComm_t comm, Window window) noexcept {
  static_cast<void>(nccl().ncclCommWindowDeregister(comm, window));
}

#else

void begin_window(ncclComm_t /*comm*/, void* /*data*/, std::size_t /*bytes*/, Window& /*window*/) {
  throw Internal("this header of NCCL has no windows");
}
void close_window(ncclComm_t /*comm*/, Window /*window*/) noexcept {}

#endif

void group_start() { COHORT_NCCL(ncclGroupStart(), nullptr); }

void group_end() { COHORT_NCCL(ncclGroupEnd(), nullptr); }

void all_reduce(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                ncclComm_t comm, cudaStream_t stream) {
  COHORT_NCCL(ncclAllReduce(input, output, count, type, op, comm, stream), comm);
}

void reduce(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
            ncclComm_t comm, cudaStream_t stream) {
  COHORT_NCCL(ncclReduce(input, output, count, type, op, root, comm, stream), comm);
}

void broadcast(const void* input, void* output, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream) {
  COHORT_NCCL(ncclBroadcast(input, output, count, type, root, comm, stream), comm);
}

void all_gather(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                cudaStream_t stream) {
  COHORT_NCCL(ncclAllGather(input, output, count, type, comm, stream), comm);
}

void reduce_scatter(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                    ncclComm_t comm, cudaStream_t stream) {
  COHORT_NCCL(ncclReduceScatter(input, output, count, type, op, comm, stream), comm);
}

void send(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
          cudaStream_t stream) {
  COHORT_NCCL(ncclSend(data, count, type, peer, comm, stream), comm);
}

void receive(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
             cudaStream_t stream) {
  COHORT_NCCL(ncclRecv(data, count, type, peer, comm, stream), comm);
}

}  // namespace cohort::nccl::calls
