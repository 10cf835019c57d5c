// What clients and servers of methods have in common: the messages between them, how errors travel, and the
// mark of a thread that runs a method. Requests are answered by kResult, kMismatch or kFailure with their
// number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/remote/endpoint.h>

namespace cohort::rpc {

enum class RpcMessage : std::uint16_t {
  // To a server:
  kCall,    ///< name, fingerprint of the signature, arguments
  kCancel,  ///< the call of this number need not be begun; not answered
  kList,    ///< of the methods: answers a vector of Method

  // To a client:
  kResult,    ///< what the method returned
  kMismatch,  ///< the method has another signature: this one, in words
  kFailure,   ///< an error: its code and text
};

constexpr std::uint16_t to_number(RpcMessage kind) noexcept { return static_cast<std::uint16_t>(kind); }

/// Sends `head`, and `body` after it, which is not copied where that costs more than to keep it.
void send_body(remote::Peer& peer, RpcMessage kind, std::uint64_t number, std::span<const std::byte> head,
               std::vector<std::byte> body);

/// An error as it travels to another task.
[[nodiscard]] std::vector<std::byte> to_bytes(const Error& error);

/// Bytes that are no error become DataLoss: who waits for an answer gets one.
[[nodiscard]] Error parse_failure(std::span<const std::byte> bytes);

/// Marks the calling thread as running a method of the server with this incarnation, while it lives: the
/// thread would wait for itself if it called that server.
class RunningMethod {
 public:
  explicit RunningMethod(std::uint64_t incarnation) noexcept;
  ~RunningMethod();
  RunningMethod(const RunningMethod&) = delete;
  RunningMethod& operator=(const RunningMethod&) = delete;
};

[[nodiscard]] bool is_running_method_of(std::uint64_t incarnation) noexcept;

}  // namespace cohort::rpc
