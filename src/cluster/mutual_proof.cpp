#include "mutual_proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <cohort/base/error.h>

namespace cohort::watch {

void fill_randomly(std::span<std::byte> bytes) {
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
}

MutualProof::MutualProof(Side side) : own_(static_cast<std::size_t>(side)) { fill_randomly(nonces_[own_]); }

Proof MutualProof::prove(std::string_view secret, std::string_view text) const {
  return proof_of(own_, secret, text);
}

bool MutualProof::accepts(const Proof& claimed, std::string_view secret, std::string_view text) const {
  const Proof right = proof_of(1 - own_, secret, text);
  return ::CRYPTO_memcmp(claimed.data(), right.data(), right.size()) == 0;
}

Proof MutualProof::proof_of(std::size_t side, std::string_view secret, std::string_view text) const {
  // What one end has proven is no proof of the other's.
  std::string said = side == static_cast<std::size_t>(Side::kConnector) ? "connector" : "listener";
  for (const Nonce& nonce : nonces_) said.append(as_text(nonce));
  said.append(text);
  Proof proof{};
  unsigned bytes = 0;
  const unsigned char* code = ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                     reinterpret_cast<const unsigned char*>(said.data()), said.size(),
                                     reinterpret_cast<unsigned char*>(proof.data()), &bytes);
  if (code == nullptr || bytes != proof.size()) throw Unavailable("libcrypto cannot compute HMAC-SHA256");
  return proof;
}

namespace {

std::optional<std::array<std::byte, 32>> bytes_from(std::string_view text) {
  std::array<std::byte, 32> bytes{};
  if (text.size() != bytes.size()) return std::nullopt;
  std::memcpy(bytes.data(), text.data(), bytes.size());
  return bytes;
}

}  // namespace

std::optional<Nonce> nonce_from(std::string_view text) { return bytes_from(text); }
std::optional<Proof> proof_from(std::string_view text) { return bytes_from(text); }

}  // namespace cohort::watch
