// The one copy of NCCL that this process uses, and its functions as a table of pointers: nothing links the
// library. It is opened on first use, and never closed: it has threads.
#pragma once

#include <string>

#include <nccl.h>

namespace cohort::nccl {

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 1), "Cohort needs NCCL 2.18.1 or newer");

// What a program needs to register memory.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 1)
#define COHORT_NCCL_FUNCTIONS_SINCE_2_19(USE) \
  USE(ncclMemAlloc)                           \
  USE(ncclMemFree)                            \
  USE(ncclCommRegister)                       \
  USE(ncclCommDeregister)
#else
#define COHORT_NCCL_FUNCTIONS_SINCE_2_19(USE)
#endif

// What a program needs for windows.
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 3)
#define COHORT_NCCL_FUNCTIONS_SINCE_2_27(USE) \
  USE(ncclCommWindowRegister)                 \
  USE(ncclCommWindowDeregister)
#else
#define COHORT_NCCL_FUNCTIONS_SINCE_2_27(USE)
#endif

// Each of these is in every library that is as new as the header.
#define COHORT_NCCL_FUNCTIONS(USE)      \
  COHORT_NCCL_FUNCTIONS_SINCE_2_19(USE) \
  COHORT_NCCL_FUNCTIONS_SINCE_2_27(USE) \
  USE(ncclGetVersion)                   \
  USE(ncclGetUniqueId)                  \
  USE(ncclGetErrorString)               \
  USE(ncclGetLastError)                 \
  USE(ncclCommInitRankConfig)           \
  USE(ncclCommSplit)                    \
  USE(ncclCommGetAsyncError)            \
  USE(ncclCommFinalize)                 \
  USE(ncclCommDestroy)                  \
  USE(ncclCommAbort)                    \
  USE(ncclGroupStart)                   \
  USE(ncclGroupEnd)                     \
  USE(ncclAllReduce)                    \
  USE(ncclReduce)                       \
  USE(ncclBroadcast)                    \
  USE(ncclAllGather)                    \
  USE(ncclReduceScatter)                \
  USE(ncclSend)                         \
  USE(ncclRecv)

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): it declares a name
#define COHORT_NCCL_POINTER(function) decltype(&::function) function = nullptr;
  COHORT_NCCL_FUNCTIONS(COHORT_NCCL_POINTER)
#undef COHORT_NCCL_POINTER
};

struct OpenLibrary {
  Functions functions;
  std::string path;
  int version = 0;  ///< as NCCL_VERSION_CODE
};

/// @throws Unavailable, listing what was tried and why each failed.
[[nodiscard]] const OpenLibrary& open_library();

/// For example `2.28.9`.
[[nodiscard]] std::string version_text(int version_code);

}  // namespace cohort::nccl
