// A stand-in for NCCL's library, for tests on machines without a GPU: the functions that Cohort calls,
// between threads and processes, over host memory, on the streams of the stand-in for CUDA. Communicators are
// slow: operations make progress only while they are polled. It shows which thread waits for which and which
// member notices what, and nothing about NCCL itself. COHORT_NCCL_LIBRARY names it; it is never installed.
//
//   NCCL_STAND_IN_VERSION   the NCCL_VERSION_CODE that it claims; unset: that of its header
//   NCCL_STAND_IN_LOST      a rank whose launches reach no other, on communicators that block
//   NCCL_WIN_ENABLE         0: it has no symmetric windows, as NCCL's
//
// It ends the process when operations are outstanding where NCCL permits none, and when the launches of two
// communicators come in different orders on two GPUs.
#pragma once

// Injects one fault, for a rank of this process. Tests look the function up in the library.
enum class NcclFault : int {
  kNone = 0,            // and none that was injected before
  kInitNeverEnds = 1,   // of the next communicator
  kInitFails = 2,       // likewise
  kNeverTakesPart = 3,  // the next launch runs, but reaches no other rank
  kAsyncError = 4,      // the same, and the communicator reports the error
  kWindowFails = 5,     // the next window, and with it the communicator
  kSplitNeverEnds = 6,  // of the next split, which has made the group
};
extern "C" void nccl_stand_in_inject(int rank, int fault);

// Communicators of this process that have not been destroyed or aborted yet.
extern "C" int nccl_stand_in_communicators();

// How many launches of a rank of this process are on its GPU's streams.
extern "C" int nccl_stand_in_launches(int rank);

// NCCL's threads for connections end only when all ranks of the host have closed theirs, which the end of a
// communicator waits for. Here it waits for ranks of other processes, and for those of this one if it is told
// to.
extern "C" void nccl_stand_in_wait_for_threads(bool wanted);

// How many pieces of memory are registered with communicators of this process. Releasing memory that is still
// registered, or registering memory that is not NCCL's, ends the process. Symmetric windows are counted
// separately.
extern "C" int nccl_stand_in_registrations();
extern "C" int nccl_stand_in_windows();
