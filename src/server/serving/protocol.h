// The messages between tasks that use variables and the parameter servers that keep them. Every request is
// answered by kReply or kFailure with its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "write.h"

namespace cohort::server {

enum class MessageKind : std::uint16_t {
  kReply,       ///< what was asked for
  kFailure,     ///< an error: its code and text
  kNoVariable,  ///< there is no such variable: the server that had it has come back without its memory

  // To a server:
  kIdentify,  ///< which store it has: answers the store's number, drawn at random when it was made
  kCreate,    ///< a variable, by name; the first one to create it gives its value
  kRead,      ///< a variable's value, after writes that are not committed
  kReadRows,  ///< the same for some rows of it
  kCommit,    ///< writes of an execution, to be made now
  kPrepare,   ///< writes of an execution that takes part in a commit on several servers
  kFinish,    ///< the commit of these was made
  kFence,     ///< nothing more is taken from an incarnation: answers what it has committed and prepared
  kDrop,      ///< what an incarnation has prepared is not to be made, and what it has committed is known
  kEndStep,   ///< the task has made a step: answered when it may make the next one
  kGoodbye,   ///< the task has ended its part
  kJobOver,   ///< the job has ended; also to workers, who do not answer
  kReadSlot,  ///< what is kept of a variable for optimizers

  // Between a server and its standby. What changes the server goes on to the standby as the request that it
  // was, with numbers that count such changes; a goodbye names the task.
  kFollow,        ///< to the server: the standby has nothing yet, and wants a copy and then all changes
  kCopyBegin,     ///< a StoreCopyPlan; the chunks of the memory file follow
  kCopyBytes,     ///< a chunk: its position, and the bytes
  kCopyPrepared,  ///< writes that are prepared
  kCopyEnd,       ///< how many bytes the chunks had; a change by its number
  kApplied,       ///< to the server: the standby has made all changes up to this number
  kTookOver,      ///< to the server: the standby is the server now

  kFirstOfCoordinator = 64,  ///< kinds from here on are between the coordinator and its workers
};

[[nodiscard]] constexpr std::uint16_t to_number(MessageKind kind) { return static_cast<std::uint16_t>(kind); }

/// Smaller values are copied into a message: that costs less than to keep them until it is sent.
inline constexpr std::size_t kWorthLending = std::size_t{256} << 10;

/// The incarnation by which a task's writes outside executions are known: they are numbered by themselves.
[[nodiscard]] constexpr std::uint64_t outside_executions(std::uint64_t incarnation) noexcept {
  return incarnation ^ 0x8000000000000001U;
}

/// The body of kCommit and kPrepare: the writes of one execution to one server.
struct CommitMessage {
  Execution execution = {};
  std::uint64_t forget = 0;  ///< nobody will ask for commits of this incarnation up to this number
  std::vector<Write> writes = {};
  std::vector<std::byte> result = {};  ///< a Decision; for the server that decides alone
};

[[nodiscard]] std::vector<std::byte> to_bytes(const CommitMessage& message,
                                              Carriage carriage = Carriage::kInMessage);

/// The body in two parts: of large values the largest one is at its end, and not copied.
struct CommitParts {
  std::vector<std::byte> front = {};
  std::optional<Tensor> end = {};
};
[[nodiscard]] CommitParts to_parts(const CommitMessage& message);

/// Values at the end are views of `bytes`.
[[nodiscard]] CommitMessage parse_commit(std::span<const std::byte> bytes, const Sender& sender);

/// What the server that decides remembers with the commit: which other servers take part, and the result of
/// the function.
struct Decision {
  std::vector<std::uint32_t> others = {};
  std::vector<std::byte> result = {};
};

[[nodiscard]] std::vector<std::byte> to_bytes(const Decision& decision);
[[nodiscard]] Decision parse_decision(std::span<const std::byte> bytes);

/// What kCommit and kPrepare answer: whether the writes were taken, or must be sent in the message.
enum class CommitAnswer : std::uint8_t { kTaken, kSendValues };

/// What kFinish answers: whether the writes are made, or were forgotten and must be sent again.
enum class FinishAnswer : std::uint8_t { kMade, kForgotten };

/// What kFence answers: what became of the executions of an incarnation.
struct FenceAnswer {
  std::vector<CommitRecord> committed = {};
  std::vector<std::uint64_t> prepared = {};  ///< numbers
};

[[nodiscard]] std::vector<std::byte> to_bytes(const FenceAnswer& answer);
[[nodiscard]] FenceAnswer parse_fence_answer(std::uint64_t incarnation, std::span<const std::byte> bytes);

}  // namespace cohort::server
