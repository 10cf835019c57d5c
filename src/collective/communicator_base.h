// The base class of communicators. A class that derives from it executes calls. Communicator, the interface
// for programs, has checked their arguments by then, and filled in the options of open scopes.
//
// Communicators that work through another one find functions here that hand calls on to it, and that have its
// members agree on a call without making it. BufferChecks stand between the two, where the user wants them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/communicator.h>
#include <cohort/collective/work.h>

#include "collective/call/split_exchange.h"

namespace cohort {

class CommunicatorBase : public Communicator {
 public:
  /// Makes a call that another communicator with the same members has checked, with its options filled in.
  static void run_checked(Communicator& communicator, const CollectiveCall& call) {
    communicator.execute(call);
  }
  static Work start_checked(Communicator& communicator, const CollectiveCall& call) {
    return communicator.begin(call);
  }

  /// Up to so many bytes that a member contributes, its rooted calls are eager (see CommunicationOptions).
  [[nodiscard]] virtual std::size_t eager_bytes() const noexcept { return 0; }

  /// This member is about to make a call of all members that something else carries out; `name`, which stays
  /// valid, is what errors say of it. Members that make another number of such calls before a collective of
  /// this communicator disagree. Collectives in flight have ended.
  virtual void note_call_outside(const char* /*name*/) noexcept {}
  /// The latest one was none: this member alone was refused.
  virtual void take_back_call_outside() noexcept {}

  /// A barrier of `communicator` in which the members agree on `call`, whose data is moved by something else.
  /// Its errors name `call`.
  static void agree(Communicator& communicator, const CollectiveCall& call);

 protected:
  CommunicatorBase(int rank, std::vector<MemberInfo> members, const CommunicationOptions& options = {})
      : Communicator(rank, std::move(members), options) {}

  /// The exchange with which `split` begins: the members of this member's group, in their new order; none
  /// where it takes part in no group.
  [[nodiscard]] std::vector<SplitMember> exchange_split(std::optional<int> color, int key,
                                                        const SplitContribution& contribution);
  /// The same in steps.
  void run_exchange(const SplitExchange& exchange) { run(exchange.call()); }
  [[nodiscard]] Work start_exchange(const SplitExchange& exchange) { return start(exchange.call()); }

  /// Whether calls may have their tensors on devices of this kind.
  [[nodiscard]] bool takes(DeviceKind kind) const noexcept override { return kind == DeviceKind::kCpu; }

  /// Starts a call. `call` borrows from the caller only until this returns, so implementations keep an
  /// `OwnedCall`.
  Work begin(const CollectiveCall& call) override = 0;

  /// The blocking form; an implementation may do better than starting and waiting.
  void execute(const CollectiveCall& call) override { begin(call).wait(); }
};

/// Finds a program that changes tensors while a call on them is in flight (COHORT_CHECK_BUFFERS=true). Calls
/// then work on copies of the tensors: whatever the program does to its own, the other members get what was
/// there at the start. When a call has been waited for, the program's tensors must have the checksums of the
/// start; only then the result is copied into them. In-place calls are checked like all others.
///
/// Costs two copies, two checksums and the memory of all tensors in flight.
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
