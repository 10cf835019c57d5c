// The messages between tasks that use variables and the parameter servers that keep them. Every request is
// answered by kReply or kFailure with its number.
#pragma once

#include <cstdint>

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

}  // namespace cohort::server
