// Two processes of a job that meet at a socket prove to each other that they know a secret of the job,
// without saying it: each names a number that was never used before, and the other answers with a code over
// both numbers that only those can compute who know the secret (HMAC-SHA256 [RFC 2104]).
//
//     connector                listener
//     nonce             ->
//                       <-     nonce, proof
//     proof             ->
//
// Whoever hears it all, or listens at an address that has become free, can open no other connection with it.
// What is said beside a proof (a rank, an introduction) is proven with it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace cohort::watch {

using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

enum class Side { kConnector, kListener };

/// Fills `bytes` with random ones that nobody can foretell.
/// @throws Unavailable when the system has none.
void fill_randomly(std::span<std::byte> bytes);

/// One end of one connection.
class MutualProof {
 public:
  /// @throws Unavailable when the system has no random numbers.
  explicit MutualProof(Side side);

  [[nodiscard]] const Nonce& own_nonce() const noexcept { return nonces_[own_]; }
  void hear(const Nonce& of_other_end) noexcept { nonces_[1 - own_] = of_other_end; }

  // After `hear`.

  /// Of this end, and of `text`, which goes with it.
  /// @throws Unavailable when libcrypto has no HMAC-SHA256.
  [[nodiscard]] Proof prove(std::string_view secret, std::string_view text = {}) const;

  /// Whether the other end knows the secret, and has said `text`. Takes equally long for all proofs.
  /// @throws Unavailable as `prove`.
  [[nodiscard]] bool accepts(const Proof& claimed, std::string_view secret, std::string_view text = {}) const;

 private:
  [[nodiscard]] Proof proof_of(std::size_t side, std::string_view secret, std::string_view text) const;

  std::size_t own_;
  std::array<Nonce, 2> nonces_{};  ///< by side
};

// How the three messages travel where they are the text of something else.

template <class Bytes>
[[nodiscard]] std::string_view as_text(const Bytes& bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Nothing when `text` has another length.
[[nodiscard]] std::optional<Nonce> nonce_from(std::string_view text);
[[nodiscard]] std::optional<Proof> proof_from(std::string_view text);

}  // namespace cohort::watch
