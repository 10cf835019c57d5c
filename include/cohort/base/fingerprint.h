// A Fingerprint condenses what members must agree on into 64 bits. Equal inputs give equal fingerprints on
// every machine; different ones almost never do.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohort {

class Fingerprint {
 public:
  /// The multipliers are those of the 64-bit finalizer of MurmurHash3: every bit of a word changes half of
  /// the bits that come out. The word is mixed before it meets the rest, with which it would cancel out where
  /// it is a fingerprint of the same words itself.
  constexpr Fingerprint& add(std::uint64_t word) noexcept {
    word = (word ^ word >> 32) * 0x9e3779b97f4a7c15u;
    value_ = (value_ ^ word) * 0xff51afd7ed558ccdu;
    value_ = (value_ ^ value_ >> 33) * 0xc4ceb9fe1a85ec53u;
    value_ ^= value_ >> 29;
    return *this;
  }

  /// The characters, and how many they are.
  constexpr Fingerprint& add(std::string_view text) noexcept {
    for (const char character : text) add(static_cast<std::uint64_t>(static_cast<unsigned char>(character)));
    return add(static_cast<std::uint64_t>(text.size()));
  }

  [[nodiscard]] constexpr std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

/// Of a name, at compile time where it is known.
[[nodiscard]] constexpr std::uint64_t fingerprint_of(std::string_view text) noexcept {
  return Fingerprint().add(text).value();
}

}  // namespace cohort
