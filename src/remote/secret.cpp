#include "secret.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cohort/base/error.h>

namespace cohort::remote {

void fill_randomly(std::span<std::byte> bytes) {
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Unavailable("the system has no random numbers: {}", std::strerror(errno));
  }
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_randomly(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

Proof prove(std::string_view secret, std::initializer_list<std::span<const std::byte>> parts) {
  std::vector<unsigned char> text;
  for (const std::span<const std::byte> part : parts) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(part.data());
    text.insert(text.end(), bytes, bytes + part.size());
  }
  Proof proof{};
  unsigned bytes = 0;
  const unsigned char* code =
      ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()), text.data(), text.size(),
             reinterpret_cast<unsigned char*>(proof.data()), &bytes);
  if (code == nullptr || bytes != proof.size()) throw Unavailable("libcrypto cannot compute HMAC-SHA256");
  return proof;
}

bool same(const Proof& one, const Proof& other) noexcept {
  return ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace cohort::remote
