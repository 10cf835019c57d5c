// A Communicator is one member's seat among all members of a group: `rank()` of
// `size()`. Members are threads or processes; the interface does not say which.
//
// All members make the same collective calls in the same order. Calls that differ, and
// members that do not arrive before the deadline, end in the same Error on every member,
// which names them; afterwards the communicator is unusable and repeats that Error.
// A seat is used by one thread at a time. Where a function takes an input and an
// output, they may be the same memory as described, and must not overlap otherwise.
//
// The `_async` forms return at once; the tensors must be left alone until the Work has
// ended. Several may be in flight; they end in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <cohort/collective/collective_call.h>
#include <cohort/collective/communication_options.h>
#include <cohort/collective/work.h>
#include <cohort/device/tensor.h>

namespace cohort {

class Communicator {
 public:
  virtual ~Communicator() = default;

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }
  [[nodiscard]] std::span<const MemberInfo> members() const noexcept { return members_; }

  /// The implementation, as benchmarks and `cohort-info` call it.
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;

  /// What carried out this member's latest blocking collective, for example `direct`.
  [[nodiscard]] virtual std::string_view last_algorithm() const noexcept { return name(); }

  /// Combines every member's tensor element by element; all members get the same bits. Where the
  /// elements are those of several tensors, `layout` is a fingerprint of what lies where: members must
  /// agree on it too, and not only on the number of elements.
  void all_reduce(const Tensor& tensor, ReduceOp op) { all_reduce(tensor, tensor, op); }
  void all_reduce(const Tensor& input, const Tensor& output, ReduceOp op, std::uint64_t layout = 0);
  Work all_reduce_async(const Tensor& tensor, ReduceOp op) { return all_reduce_async(tensor, tensor, op); }
  Work all_reduce_async(const Tensor& input, const Tensor& output, ReduceOp op, std::uint64_t layout = 0);

  /// As all_reduce, but only `root` gets the result: its `output` is written, the others' ignored.
  void reduce(const Tensor& input, const Tensor& output, ReduceOp op, int root);
  Work reduce_async(const Tensor& input, const Tensor& output, ReduceOp op, int root);

  /// Every member's tensor becomes that of `root`.
  void broadcast(const Tensor& tensor, int root);
  Work broadcast_async(const Tensor& tensor, int root);

  /// The members' inputs one after the other, by rank. `output` has size() times the elements of
  /// `input`, which may be this member's block of it.
  void all_gather(const Tensor& input, const Tensor& output);
  Work all_gather_async(const Tensor& input, const Tensor& output);

  /// As all_gather with `counts[r]` elements from member r; every member passes the same counts.
  void all_gather_uneven(const Tensor& input, const Tensor& output, std::span<const std::size_t> counts);
  Work all_gather_uneven_async(const Tensor& input, const Tensor& output,
                               std::span<const std::size_t> counts);

  /// Combines as all_reduce; member r gets block r of the result. `input` has size() times the
  /// elements of `output`, which may be this member's block of it.
  void reduce_scatter(const Tensor& input, const Tensor& output, ReduceOp op);
  Work reduce_scatter_async(const Tensor& input, const Tensor& output, ReduceOp op);

  /// Block s of member r's input becomes block r of member s's output.
  void all_to_all(const Tensor& input, const Tensor& output);
  Work all_to_all_async(const Tensor& input, const Tensor& output);

  /// As all_gather, but only `root` gets the result: its `output` is written, the others' ignored.
  void gather(const Tensor& input, const Tensor& output, int root);
  Work gather_async(const Tensor& input, const Tensor& output, int root);

  /// Member r gets block r of the root's `input`; the others' inputs are ignored.
  void scatter(const Tensor& input, const Tensor& output, int root);
  Work scatter_async(const Tensor& input, const Tensor& output, int root);

  /// Returns once every member has called it.
  void barrier();
  Work barrier_async();

  /// One message from this member to `peer`; matches the receive of the same tag, in order.
  void send(const Tensor& tensor, int peer, int tag = 0);
  Work send_async(const Tensor& tensor, int peer, int tag = 0);
  void receive(const Tensor& tensor, int peer, int tag = 0);
  Work receive_async(const Tensor& tensor, int peer, int tag = 0);

  /// What its calls follow, and whoever packs tensors for them.
  [[nodiscard]] const CommunicationOptions& options() const noexcept { return options_; }

  /// Ends every pending and future call of this group, on the members that share this process,
  /// with `error`; used when a member can no longer take part.
  virtual void abort(const Error& error) = 0;

 protected:
  Communicator(int rank, std::vector<MemberInfo> members, const CommunicationOptions& options = {})
      : rank_(rank), members_(std::move(members)), options_(options) {}

  /// Starts a call whose arguments have been checked. What it borrows is the caller's again when
  /// this returns, so implementations keep an `OwnedCall`.
  virtual Work start(const CollectiveCall& call) = 0;

  /// The blocking form; implementations may have a shorter way than starting and waiting.
  virtual void run(const CollectiveCall& call) { start(call).wait(); }

 private:
  friend class CallOptions;
  [[nodiscard]] CollectiveCall in_force(CollectiveCall call) const;

  int rank_;
  std::vector<MemberInfo> members_;
  CommunicationOptions options_;
  std::uint64_t purpose_ = 0;
};

/// While it lives, the calls of one seat follow `options` where these say something.
class [[nodiscard]] CallOptions {
 public:
  /// `purpose` is a fingerprint of what the calls are made for, on which members must agree as well.
  /// @throws InvalidArgument for options that are not valid.
  CallOptions(Communicator& communicator, const CommunicationOptions& options, std::uint64_t purpose = 0);
  ~CallOptions();

  CallOptions(const CallOptions&) = delete;
  CallOptions& operator=(const CallOptions&) = delete;

 private:
  Communicator& communicator_;
  CommunicationOptions outer_options_;
  std::uint64_t outer_purpose_;
};

}  // namespace cohort
