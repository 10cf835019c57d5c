// A Communicator is one member's handle on a group of members: `rank()` of
// `size()`. Members are threads or processes; the interface does not say which.
//
// All members make the same collective calls in the same order. Calls that differ, and
// members that do not arrive before the deadline, end in the same Error on every member,
// which names them; afterwards the communicator is unusable and repeats that Error.
// A communicator is used by one thread at a time. Where a function takes an input and an
// output, they may be the same memory as described, and must not overlap otherwise.
//
// Urgent calls overtake normal ones; see CallOptions. `split` makes communicators among some of the
// members. A CommunicationScope gives all calls of a block their options; see communication_scope.h.
//
// The `_async` forms return at once; the tensors must be left alone until the Work has
// ended. Several may be in flight; they end in any order.
//
// Those who write a communicator of their own derive from CommunicatorBase; see communicator_base.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

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

class Communicator {
 public:
  virtual ~Communicator();

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }
  [[nodiscard]] std::span<const MemberInfo> members() const noexcept { return members_; }

  /// The implementation, as benchmarks and `cohort-info` call it.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

  /// What carried out this member's latest blocking collective, for example `direct`.
  [[nodiscard]] virtual std::string_view last_algorithm() const noexcept { return name(); }

  /// Why that one: `size` (small calls have one way), `model` (built-in figures), `probe` or `file`
  /// (figures that were measured, see tuning.h), `forced` (COHORT_ALGORITHM), or `library`.
  [[nodiscard]] virtual std::string_view last_choice() const noexcept { return "library"; }

  /// The figures by which algorithms are chosen, once a call has needed them.
  [[nodiscard]] virtual std::vector<TuningFigure> tuning() const { return {}; }

  // For tensors that take part in calls again and again, such as packed gradients.

  /// Where this member's tensors usually are.
  [[nodiscard]] virtual Device device() const noexcept { return {}; }

  /// A tensor on `device()`, uninitialised, where this communicator moves it best. Collective: all members
  /// pass the same arguments. Expensive: on GPUs it waits for calls in flight and allocates from the driver;
  /// the memory of tensors that are gone is freed at the next `allocate` or with the communicator, which a
  /// tensor may outlive. In one call, either all members pass the same slice of such a tensor, or none does.
  /// @throws Unavailable when memory is short; on GPUs as a collective, on every member.
  [[nodiscard]] virtual Tensor allocate(Shape shape, DType dtype);

  /// What calls cost here, by which tensors are packed: round numbers on CPUs; on GPUs what the first use of
  /// this function measures, which is collective, see measured_cost.h. The same on all members.
  [[nodiscard]] const CommunicationCost& cost();

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

  /// Divides the members into groups. Those of one `color` get a communicator of their own, in the order
  /// of `key`, and of their ranks here where keys are equal; a member that passes no color takes part in the
  /// call and gets null. Collective over all members, and blocking. A group keeps this communicator's options
  /// and nothing else of it: both are used, fail and go independently of each other. But over several nodes,
  /// a member splits a communicator and the groups that descend from it one after the other.
  /// @throws as any collective; Unavailable on the whole group when a member has no memory for its control
  /// block, or when one of several nodes has members that are in 511 such groups already, or as many as MPI's
  /// tags can tell apart; WrongContext when the member makes another such group at the same time.
  [[nodiscard]] virtual std::unique_ptr<Communicator> split(std::optional<int> color, int key = 0) = 0;

  /// The error that ended this communicator, if there is one; for callers that wait for something else
  /// meanwhile.
  [[nodiscard]] virtual std::optional<Error> failure() = 0;

  /// What calls follow, and how lists of tensors are packed for them.
  [[nodiscard]] const CommunicationOptions& options() const noexcept { return options_; }

  /// Ends every pending and future call of this group, on the members that share this process,
  /// with `error`; used when a member can no longer take part.
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
  Work start(const CollectiveCall& call);
  void require_place(const CollectiveCall& call) const;
  [[nodiscard]] CollectiveCall with_scope_options(CollectiveCall call) const;

  int rank_;
  std::vector<MemberInfo> members_;
  std::unique_ptr<BufferChecks> checks_;  ///< null unless COHORT_CHECK_BUFFERS asks for them
  CommunicationOptions options_;
  std::optional<CommunicationCost> cost_;  ///< once it has been asked for
  std::optional<double> scope_timeout_;    ///< of the open scopes, where they set one
  std::uint64_t purpose_ = 0;
  bool calls_are_plain_ = true;  ///< nothing of the above is to be said of each call
};

}  // namespace cohort
