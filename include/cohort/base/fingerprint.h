// A Fingerprint condenses what members must agree on into 64 bits (FNV-1a over words).
// Equal inputs give equal fingerprints on every machine; different ones almost never do.
#pragma once

#include <cstdint>

namespace cohort {

class Fingerprint {
 public:
  Fingerprint& add(std::uint64_t word) noexcept {
    for (int byte = 0; byte < 8; ++byte) value_ = (value_ ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3u;
    return *this;
  }

  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace cohort
