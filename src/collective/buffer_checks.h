// Finds a program that changes tensors while a call on them is in flight
// (COHORT_CHECK_BUFFERS=true). Calls then work on copies of the tensors: whatever the
// program does to its own, the other members get what was there at the start. When a call
// has been waited for, the program's tensors must have the checksums of the start; only
// then the result is copied into them. In-place calls are checked like all others.
//
// Costs two copies, two checksums and the memory of all tensors in flight.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/work.h>

namespace cohort {

class BufferChecks {
 public:
  /// For the member `rank` of `size`, described by `info`.
  BufferChecks(int rank, int size, MemberInfo info) : rank_(rank), size_(size), info_(std::move(info)) {}

  /// Calls whose Works were dropped are finished here, unless an exception is unwinding.
  ~BufferChecks();

  BufferChecks(const BufferChecks&) = delete;
  BufferChecks& operator=(const BufferChecks&) = delete;

  /// Starts a copy of the call by `start`. The Work throws InvalidArgument when a tensor was changed;
  /// the communicator remains usable then, and this member's tensors stay as they are.
  [[nodiscard]] Work start(const CollectiveCall& call,
                           const std::function<Work(const CollectiveCall&)>& start);

 private:
  class Checked;
  [[nodiscard]] std::string name_next(const CollectiveCall& call);
  static void finish_dropped(Checked& checked);

  int rank_;
  int size_;
  MemberInfo info_;
  std::uint64_t collectives_ = 0;
  std::vector<std::shared_ptr<Checked>> unfinished_;
};

}  // namespace cohort
