// How two tasks prove to each other that they know the job's secret, without saying it: each names a number
// that was never used before, and the other answers with a code over both numbers that only those can compute
// who know the secret (HMAC-SHA256).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace cohort::remote {

using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

/// A secret shorter than this could be guessed.
inline constexpr std::size_t kShortestSecret = 16;

/// Fills `bytes` with random ones that nobody can foretell.
/// @throws Unavailable when the system has none.
void fill_randomly(std::span<std::byte> bytes);

[[nodiscard]] std::uint64_t random_number();

[[nodiscard]] Proof prove(std::string_view secret, std::initializer_list<std::span<const std::byte>> parts);

/// Takes equally long for all proofs.
[[nodiscard]] bool same(const Proof& one, const Proof& other) noexcept;

}  // namespace cohort::remote
