// What one member asks of a collective, with the types erased: kind, dtype, operator
// and bytes. Communicators take these; `signature` is the part of a call on which all
// members must agree, and `explain_mismatch` names those that do not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cohort/collective/call_options.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/collective/collective_kind.h>
#include <cohort/collective/communication_options.h>
#include <cohort/collective/reduce_op.h>
#include <cohort/device/allocator.h>
#include <cohort/device/device.h>

namespace cohort {

class HookedCall;

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;  ///< the root of rooted collectives, the other member of send and receive
  int tag = 0;   ///< of send and receive

  /// Elements that one member contributes to, or takes from, the collective: the whole tensor of
  /// all-reduce, reduce, broadcast, send and receive, one member's block of the others.
  std::size_t elements = 0;

  /// Where blocks differ in size: the elements of each, by rank. Borrowed from the caller. Of Communicator's
  /// functions only the uneven all-gather has them.
  std::span<const std::size_t> counts = {};

  /// Fingerprint of what else members must agree on: the shapes of packed tensors, and the purpose; 0 for
  /// nothing.
  std::uint64_t layout = 0;

  /// What the call is for, borrowed from the caller; null: its arguments say it all. Part of `layout`.
  const CallPurpose* purpose = nullptr;

  Priority priority = Priority::kNormal;

  /// How long the call waits for its members; unset: the communicator's time-out. 0: for ever.
  std::optional<double> timeout_seconds = {};

  /// How an all-reduce moves data between nodes; part of `layout` as well, since members must agree on it.
  CommunicationImplementation implementation = CommunicationImplementation::kAuto;

  const std::byte* input = nullptr;  ///< equals `output` where the call is in place
  std::byte* output = nullptr;       ///< null where this member gets no result

  /// Where the data lies; members must agree on its kind.
  Device device = {};

  /// Whether the call is captured in a graph instead of running now; members must agree on that, too.
  bool captured = false;

  /// The call that this one stands for in signatures and messages, borrowed from the caller; null: itself.
  const CollectiveCall* stands_for = nullptr;
  [[nodiscard]] const CollectiveCall& as_called() const noexcept {
    return stands_for == nullptr ? *this : *stands_for;
  }

  /// Of an asynchronous call, to be ended with it, borrowed from the caller; null: no hooks.
  HookedCall* hooked = nullptr;

  /// The buffers that hold input and output, borrowed from the caller's tensors; null where there is none.
  std::array<const std::shared_ptr<const Buffer>*, 2> buffers{};
};

/// Bytes that the call reads at `input`, and writes at `output`, when the member `rank` of `size` makes it.
[[nodiscard]] std::size_t input_bytes(const CollectiveCall& call, int rank, int size) noexcept;
[[nodiscard]] std::size_t output_bytes(const CollectiveCall& call, int rank, int size) noexcept;

/// Whether that member reads its input, and writes its output: where both are one tensor, it does one of the
/// two.
[[nodiscard]] bool reads_input(const CollectiveCall& call, int rank) noexcept;
[[nodiscard]] bool writes_output(const CollectiveCall& call, int rank) noexcept;

/// A copy of a call that owns what the call borrows: for calls that outlive the function that made them.
class OwnedCall {
 public:
  explicit OwnedCall(const CollectiveCall& call);
  OwnedCall(OwnedCall&&) = default;
  OwnedCall& operator=(OwnedCall&&) = default;

  [[nodiscard]] const CollectiveCall& get() const noexcept { return call_; }
  const CollectiveCall* operator->() const noexcept { return &call_; }

  /// Its share in the tensors, which it keeps no longer: for a call that has ended.
  [[nodiscard]] std::array<std::shared_ptr<const Buffer>, 2> give_up_buffers() noexcept {
    return std::move(buffers_);
  }

 private:
  CollectiveCall call_;
  std::unique_ptr<const OwnedCall> stands_for_;
  std::shared_ptr<const CallPurpose> purpose_;
  std::shared_ptr<HookedCall> hooked_;
  std::vector<std::size_t> counts_;
  std::array<std::shared_ptr<const Buffer>, 2> buffers_;
};

/// For example `all_reduce(float32[1000], sum)`, or `all_reduce(float32[1], sum), which reads v`.
[[nodiscard]] std::string describe(const CollectiveCall& call);

/// What a call is for; empty where it has no purpose.
[[nodiscard]] CallWords words_of(const CollectiveCall& call);

/// The part of a call on which members must agree; trivially copyable, so it can travel as bytes. Its
/// `sequence` is the number of the call among those of all priorities, not of its announcements.
struct CallSignature {
  std::uint64_t sequence = 0;
  std::uint64_t elements = 0;
  std::uint64_t layout = 0;
  CollectiveKind kind = CollectiveKind::kBarrier;
  DType dtype = DType::kUInt8;
  std::uint8_t op = 0;
  Priority priority = Priority::kNormal;
  std::int32_t root = 0;
  DeviceKind device = DeviceKind::kCpu;
  bool captured = false;

  friend bool operator==(const CallSignature&, const CallSignature&) = default;
};

[[nodiscard]] CallSignature signature(const CollectiveCall& call, std::uint64_t sequence);

/// What error messages say about a member.
struct MemberInfo {
  int worker = 0;
  std::string host;
};

/// For example `member 5 (worker 2, host n1)`.
[[nodiscard]] std::string describe(int member, const MemberInfo& info);

/// The same where the call says more: `replica 5 (worker 2, host n1, cpu:1)`, `worker 2 (host n1)`.
[[nodiscard]] std::string describe(int member, const MemberInfo& info, const CallWords& words);

/// What one member has called.
struct MemberCall {
  int member = 0;
  CallSignature signature;
  CallWords words = {};  ///< of the purpose, where there is one and the member could say it
};

/// Nothing when all signatures agree; otherwise a message that names the odd members by majority, what they
/// called and what the others called; without a majority it names all. `members` are all of the
/// communicator's. `odd_member` gets the lowest odd member.
[[nodiscard]] std::optional<std::string> explain_mismatch(std::span<const MemberCall> calls,
                                                          std::span<const MemberInfo> members,
                                                          int& odd_member);

/// Members for whom `call` waits, by the names that messages about it use: as the replicas or the workers
/// that its purpose speaks of.
[[nodiscard]] std::string list_members(const CollectiveCall& call, std::span<const int> ranks,
                                       std::span<const MemberInfo> members);

/// For example `deadline of 0.2 s (set for this call)`.
[[nodiscard]] std::string describe_deadline(const CollectiveCall& call, double seconds);

/// Members that did not arrive in time; one of them at least.
struct MissingMembers {
  std::span<const int> silent;          ///< of which nothing was heard
  std::span<const int> elsewhere = {};  ///< that have answered, from where they wait for something else
};

/// The message about them.
[[nodiscard]] std::string explain_missing(const CollectiveCall& call, std::uint64_t sequence,
                                          const MissingMembers& missing, std::span<const MemberInfo> members,
                                          double waited_seconds);

}  // namespace cohort
