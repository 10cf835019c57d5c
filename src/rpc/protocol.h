// The messages between clients and servers of methods. Requests are answered by kResult, kMismatch or
// kFailure with their number.
#pragma once

#include <cstdint>

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

}  // namespace cohort::rpc
