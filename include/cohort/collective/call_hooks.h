// Functions of the program's that learn of each call of a communicator, for tools: tracers, profilers, tests.
// They are given with the options of a communicator or of a strategy, whose communicators then have them:
//
//     const CallHooks hooks{
//         .on_call_begin = [&](const CallEvent& event) { tracer.open(event.handle, event.time); },
//         .on_call_end = [&](const CallEvent& event) { tracer.close(event.handle, event.time); }};
//     const auto communicator = session.make_communicator({.hooks = &hooks});
//
// `on_call_begin` runs on the thread that makes the call, before anything else. `on_call_end` runs once for
// each call that has begun: of a blocking call on the same thread, before the call returns or throws; of an
// asynchronous one on whichever thread finds that it has ended, which may be the library's own, before `wait`
// and `done` tell of it. On GPUs that is when the host's part has ended, and the GPU may still be at it.
// Where members are threads and share hooks, these run at the same time.
//
// Hooks must not use communicators, and must not wait for a thread that does. One that throws is dropped with
// the other one, for this member's communicator and with one warning; the calls go on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include <cohort/base/error.h>
#include <cohort/collective/collective_kind.h>
#include <cohort/collective/reduce_op.h>
#include <cohort/device/dtype.h>

namespace cohort {

/// Valid while the hook runs.
struct CallEvent {
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  ///< the root of rooted collectives, the other member of send and receive
  int tag = 0;   ///< of send and receive
  std::size_t elements =
      0;  ///< that the member contributes or takes: of what has a block per member, one block
  bool is_async = false;

  std::string_view communicator = {};  ///< its name in reports and timelines, the same on all members
  int rank = 0;                        ///< of the member that calls
  int members = 1;

  /// Of a collective, among those of the communicator, from 0: the same on all members, and in messages.
  std::uint64_t number = 0;
  /// The same at the begin and at the end of a call, and different for each call of the process.
  std::uint64_t handle = 0;

  std::chrono::steady_clock::time_point time = {};
  const Error* error = nullptr;  ///< at the end of a call that failed: why
};

struct CallHooks {
  std::function<void(const CallEvent& event)> on_call_begin = {};  ///< may be empty
  std::function<void(const CallEvent& event)> on_call_end = {};    ///< may be empty
};

}  // namespace cohort
