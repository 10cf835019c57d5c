// A Communicator is one member's handle on a group of members: `rank()` of
// `size()`. Members are threads or processes; the interface does not say which.
//
// All members make the same collective calls in the same order. Calls that differ, and
// members that do not arrive before the deadline, end in the same Error on every member,
// which names them; afterwards the communicator is unusable and repeats that Error. A
// communicator is used by one thread at a time. The input and the output of a call may
// share memory only as its function allows.
//
// Urgent calls overtake normal ones; see CallOptions. `split` divides the members into groups. A
// CommunicationScope sets options for all calls of a block of code; see communication_scope.h.
//
// The `_async` forms return at once; the program must not touch the tensors until the
// Work has ended. Several may be in flight; they end in any order.
//
// Implementations derive from CommunicatorBase; see communicator_base.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <cohort/collective/call_hooks.h>
#include <cohort/collective/call_options.h>
#include <cohort/collective/collective_call.h>
#include <cohort/collective/communication_options.h>
#include <cohort/collective/packing.h>
#include <cohort/collective/tuning.h>
#include <cohort/collective/work.h>
#include <cohort/device/tensor.h>

namespace cohort {

class BufferChecks;
class CommunicatorBase;
class HookedCall;
class HookedCalls;

class Communicator {
 public:
  virtual ~Communicator();

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }
  [[nodiscard]] std::span<const MemberInfo> members() const noexcept { return members_; }

  /// The name of the implementation, for example `node` or `network`.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

  /// The group's name in reports, timelines and events of hooks, the same on all members: `1`, or `1.3.0`
  /// for what it was split into. Empty where the implementation knows none.
  [[nodiscard]] virtual std::string_view group_name() const noexcept { return {}; }

  /// The protocol or algorithm of this member's latest blocking collective, for example `direct`. Over
  /// several nodes that between the nodes, for example `two_level_ring`, or `roll_call` for small calls.
  [[nodiscard]] virtual std::string_view last_algorithm() const noexcept { return name(); }

  /// Why it was chosen: `size` (small calls leave no choice), `model` (built-in figures), `probe` or `file`
  /// (figures that were measured, see tuning.h), `forced` (COHORT_ALGORITHM), or `library` where a library
  /// below chooses by itself, as NCCL does.
  [[nodiscard]] virtual std::string_view last_choice() const noexcept { return "library"; }

  /// The figures by which algorithms are chosen, once a call has needed them.
  [[nodiscard]] virtual std::vector<TuningFigure> tuning() const { return {}; }

  // For tensors that take part in calls again and again, such as packed gradients.

  /// Where this member's tensors usually are.
  [[nodiscard]] virtual Device device() const noexcept { return {}; }

  /// An uninitialised tensor on `device()`, in the memory that this communicator moves fastest. Collective:
  /// all members pass the same arguments. Expensive: on GPUs it waits for calls in flight and allocates from
  /// the driver; the memory of destroyed tensors is freed at the next `allocate` or with the communicator. A
  /// tensor may outlive the communicator. In one call, either all members pass the same slice of such a
  /// tensor, or none does.
  /// @throws Unavailable when memory is short; on GPUs as a collective, on every member.
  [[nodiscard]] virtual Tensor allocate(Shape shape, DType dtype);

  /// What calls cost here, which decides how tensors are packed; the same on all members. Round numbers on
  /// CPUs. On GPUs the first use of this function measures the cost, and is collective; see tensor_lists.h.
  [[nodiscard]] const CommunicationCost& cost();

  /// Packed reductions move such a tensor in calls of at most so many bytes: a call after them does not wait
  /// long, and what goes through the host needs little room there. GPUs that move it themselves take it
  /// whole.
  [[nodiscard]] virtual std::size_t largest_call_bytes(const Tensor& tensor) const noexcept;

  // Each call takes options of its own; see call_options.h.

  /// Combines every member's tensor element by element; all members get the same bits.
  void all_reduce(const Tensor& tensor, ReduceOp op, const CallOptions& options = {}) {
    all_reduce(tensor, tensor, op, options);
  }
  void all_reduce(const Tensor& input, const Tensor& output, ReduceOp op, const CallOptions& options = {});
  Work all_reduce_async(const Tensor& tensor, ReduceOp op, const CallOptions& options = {}) {
    return all_reduce_async(tensor, tensor, op, options);
  }
  Work all_reduce_async(const Tensor& input, const Tensor& output, ReduceOp op,
                        const CallOptions& options = {});

  /// As all_reduce, but only `root` gets the result: its `output` is written, the others' ignored.
  void reduce(const Tensor& input, const Tensor& output, ReduceOp op, int root,
              const CallOptions& options = {});
  Work reduce_async(const Tensor& input, const Tensor& output, ReduceOp op, int root,
                    const CallOptions& options = {});

  /// Every member's tensor becomes that of `root`.
  void broadcast(const Tensor& tensor, int root, const CallOptions& options = {});
  Work broadcast_async(const Tensor& tensor, int root, const CallOptions& options = {});

  /// The members' inputs one after the other, by rank. `output` has size() times the elements of
  /// `input`, which may be this member's block of it.
  void all_gather(const Tensor& input, const Tensor& output, const CallOptions& options = {});
  Work all_gather_async(const Tensor& input, const Tensor& output, const CallOptions& options = {});

  /// As all_gather with `counts[r]` elements from member r; every member passes the same counts.
  void all_gather_uneven(const Tensor& input, const Tensor& output, std::span<const std::size_t> counts,
                         const CallOptions& options = {});
  Work all_gather_uneven_async(const Tensor& input, const Tensor& output, std::span<const std::size_t> counts,
                               const CallOptions& options = {});

  /// Combines as all_reduce; member r gets block r of the result. `input` has size() times the
  /// elements of `output`, which may be this member's block of it.
  void reduce_scatter(const Tensor& input, const Tensor& output, ReduceOp op,
                      const CallOptions& options = {});
  Work reduce_scatter_async(const Tensor& input, const Tensor& output, ReduceOp op,
                            const CallOptions& options = {});

  /// Block s of member r's input becomes block r of member s's output.
  void all_to_all(const Tensor& input, const Tensor& output, const CallOptions& options = {});
  Work all_to_all_async(const Tensor& input, const Tensor& output, const CallOptions& options = {});

  /// As all_gather, but only `root` gets the result: its `output` is written, the others' ignored.
  void gather(const Tensor& input, const Tensor& output, int root, const CallOptions& options = {});
  Work gather_async(const Tensor& input, const Tensor& output, int root, const CallOptions& options = {});

  /// Member r gets block r of the root's `input`; the others' inputs are ignored.
  void scatter(const Tensor& input, const Tensor& output, int root, const CallOptions& options = {});
  Work scatter_async(const Tensor& input, const Tensor& output, int root, const CallOptions& options = {});

  /// Returns once every member has called it.
  void barrier(const CallOptions& options = {});
  Work barrier_async(const CallOptions& options = {});

  /// One message from this member to `peer`; matches the receive of the same tag, in order.
  /// `timeout_seconds` is this message's, as in CallOptions.
  void send(const Tensor& tensor, int peer, int tag = 0, std::optional<double> timeout_seconds = {});
  Work send_async(const Tensor& tensor, int peer, int tag = 0, std::optional<double> timeout_seconds = {});
  void receive(const Tensor& tensor, int peer, int tag = 0, std::optional<double> timeout_seconds = {});
  Work receive_async(const Tensor& tensor, int peer, int tag = 0, std::optional<double> timeout_seconds = {});

  /// Divides the members into groups. Members that pass the same `color` get a communicator of their own,
  /// ordered by `key` and then by their rank here; a member that passes no color takes part in the call and
  /// gets null. Collective over all members, and blocking. A group takes over the options of this
  /// communicator; otherwise each is used, fails and is destroyed independently of the other. But over
  /// several nodes, a member must not split a communicator and a group that descends from it at the same
  /// time.
  /// @throws as any collective; Unavailable on the whole group when a member has no memory for its control
  /// block, or when a group over several nodes finds no context id that is free on all of its members: a
  /// member can be in 511 such groups, or in fewer where MPI's tags allow no more; WrongContext when the
  /// member makes another such group at the same time.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split(std::optional<int> color, int key = 0) = 0;

  /// The error that ended this communicator, if there is one; for callers that wait for something else
  /// meanwhile.
  [[nodiscard]] virtual std::optional<Error> failure() = 0;

  /// The options of all calls, where a call does not set its own.
  [[nodiscard]] const CommunicationOptions& options() const noexcept { return options_; }

  /// Ends every pending and future call of this group with `error`, on all members; used when a member can no
  /// longer take part.
  virtual void abort(const Error& error) = 0;

 private:
  friend class CommunicatorBase;
  friend class CommunicationScope;

  Communicator(int rank, std::vector<MemberInfo> members, const CommunicationOptions& options);

  // What implementations do; see CommunicatorBase.
  [[nodiscard]] virtual bool takes(DeviceKind kind) const noexcept = 0;
  virtual Work begin(const CollectiveCall& call) = 0;
  virtual void execute(const CollectiveCall& call) = 0;

  void run(const CollectiveCall& call);
  void run_effective(const CollectiveCall& call);
  void run_with_hooks(const CollectiveCall& call);
  Work start(const CollectiveCall& call);
  Work start_effective(const CollectiveCall& call);
  [[nodiscard]] std::shared_ptr<HookedCall> hook(const CollectiveCall& call, bool is_async);
  void require_place(const CollectiveCall& call) const;
  [[nodiscard]] CollectiveCall with_scope_options(CollectiveCall call) const;

  int rank_;
  std::vector<MemberInfo> members_;
  std::unique_ptr<BufferChecks> checks_;  ///< null unless COHORT_CHECK_BUFFERS asks for them
  CommunicationOptions options_;
  std::shared_ptr<HookedCalls> hooked_;    ///< null before the first call, and where there are no hooks
  std::optional<CommunicationCost> cost_;  ///< once it has been asked for
  std::optional<double> scope_timeout_;    ///< of the open scopes, where they set one
  const CallPurpose* purpose_ = nullptr;   ///< of the innermost scope that has one
  bool calls_are_plain_ = true;            ///< none of the above applies to calls
};

}  // namespace cohort
