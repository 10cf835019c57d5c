// Every NCCL function that Cohort uses, each wrapped once: an error becomes an exception with the call
// as written, NCCL's own text and what it said last. Nothing else calls NCCL. The names are those of NCCL
// without the prefix.
//
// Cohort's communicators do not block: what a call begins is under way until `is_settled`, and until then the
// communicator takes no other call but `abort`. One made by `init` does block: its calls return when they are
// done. It is for callers that need no deadline, such as the peer of the benchmarks.
#pragma once

#include <cstddef>

#include <nccl.h>

namespace cohort::nccl::calls {

[[nodiscard]] ncclUniqueId unique_id();

/// On the thread's current device, as `begin_init`. Blocks until all members have arrived.
[[nodiscard]] ncclComm_t init(int size, const ncclUniqueId& id, int rank);

/// On the thread's current device.
[[nodiscard]] ncclComm_t begin_init(int size, const ncclUniqueId& id, int rank);
/// Collective over the members of `comm`. NCCL sets `group` before `comm` is settled, with null for a member
/// that passes NCCL_SPLIT_NOCOLOR.
void begin_split(ncclComm_t comm, int color, int key, ncclComm_t& group);

/// Whether what was begun has ended. @throws what has gone wrong on `comm` since it was made.
[[nodiscard]] bool is_settled(ncclComm_t comm);

void begin_finalize(ncclComm_t comm);
void destroy(ncclComm_t comm) noexcept;
/// Ends what is under way, on this member alone; `comm` is gone.
void abort(ncclComm_t comm) noexcept;

/// Which memory functions the header of NCCL has that Cohort was built with; the library has them then, too.
/// The others must not be called.
inline constexpr bool kHasMemory = NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1);
inline constexpr bool kHasWindows = NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3);

/// Of the current device.
[[nodiscard]] void* mem_alloc(std::size_t bytes);
void mem_free(void* memory) noexcept;
/// Nothing may be under way on `comm`.
[[nodiscard]] void* register_memory(ncclComm_t comm, void* data, std::size_t bytes);
void deregister(ncclComm_t comm, void* registration) noexcept;

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
using Window = ncclWindow_t;
#else
using Window = void*;
#endif

/// Registers memory as a window: collective over the members of `comm`, with memory of the same size on each.
/// NCCL sets `window` before `comm` is settled. It is a symmetric one where NCCL has these for the GPUs and
/// has not been told to make none (NCCL_WIN_ENABLE=0); otherwise it stands for the registration of this
/// member's memory, as by `register_memory`, and may be null where NCCL does not register that.
void begin_window(ncclComm_t comm, void* data, std::size_t bytes, Window& window);
/// On this member alone; nothing may be under way on `comm`.
void close_window(ncclComm_t comm, Window window) noexcept;

/// Between the two, calls of this thread are collected; `group_end` begins all of them.
void group_start();
void group_end();

void all_reduce(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                ncclComm_t comm, cudaStream_t stream);
void reduce(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
            ncclComm_t comm, cudaStream_t stream);
void broadcast(const void* input, void* output, std::size_t count, ncclDataType_t type, int root,
               ncclComm_t comm, cudaStream_t stream);
void all_gather(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                cudaStream_t stream);
void reduce_scatter(const void* input, void* output, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
                    ncclComm_t comm, cudaStream_t stream);
void send(const void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
          cudaStream_t stream);
void receive(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
             cudaStream_t stream);

}  // namespace cohort::nccl::calls
