// An error as it travels to another task.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <cohort/base/error.h>

namespace cohort::rpc {

[[nodiscard]] std::vector<std::byte> to_bytes(const Error& error);

/// Bytes that are no error become DataLoss: who waits for an answer gets one.
[[nodiscard]] Error parse_failure(std::span<const std::byte> bytes);

}  // namespace cohort::rpc
