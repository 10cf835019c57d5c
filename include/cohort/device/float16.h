// The two 16-bit floating-point types: float16 (IEEE 754 binary16) and bfloat16 (the
// upper half of a float32). They store and convert; arithmetic is done in float32,
// to which both convert exactly. Conversion from float32 rounds to nearest, ties to
// even, by integer arithmetic, so every machine gives the same bits, and every GPU.
#pragma once

#include <bit>
#include <cstdint>

namespace cohort {

class float16 {
 public:
  float16() = default;
  constexpr explicit float16(float value) noexcept : bits_(from_float(value)) {}
  constexpr explicit operator float() const noexcept { return to_float(bits_); }

  [[nodiscard]] static constexpr float16 from_bits(std::uint16_t bits) noexcept;
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  static constexpr std::uint16_t from_float(float value) noexcept;
  static constexpr float to_float(std::uint16_t bits) noexcept;
  std::uint16_t bits_ = 0;
};

class bfloat16 {
 public:
  bfloat16() = default;
  constexpr explicit bfloat16(float value) noexcept : bits_(from_float(value)) {}
  constexpr explicit operator float() const noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

  [[nodiscard]] static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept;
  [[nodiscard]] constexpr std::uint16_t bits() const noexcept { return bits_; }

 private:
  static constexpr std::uint16_t from_float(float value) noexcept;
  std::uint16_t bits_ = 0;
};

constexpr float16 float16::from_bits(std::uint16_t bits) noexcept {
  float16 value;
  value.bits_ = bits;
  return value;
}

constexpr std::uint16_t float16::from_float(float value) noexcept {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000u);
  const std::uint32_t magnitude = word & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u | static_cast<std::uint16_t>((magnitude >> 13) & 0x3ffu);
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds beyond 65504: infinity
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is subnormal: adding 0.5 aligns the ulp of the float32 sum
    // with the subnormal's, so the addition itself rounds to nearest even.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(aligned) - 0x3f000000u);
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return sign | static_cast<std::uint16_t>((magnitude + 0xc8000fffu + odd) >> 13);
}

constexpr float float16::to_float(std::uint16_t bits) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x0400u) {
    constexpr float kSubnormalUnit = 0x1p-24f;
    const float value = static_cast<float>(magnitude) * kSubnormalUnit;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

constexpr bfloat16 bfloat16::from_bits(std::uint16_t bits) noexcept {
  bfloat16 value;
  value.bits_ = bits;
  return value;
}

constexpr std::uint16_t bfloat16::from_float(float value) noexcept {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((word >> 16) | 0x0040u);
  const std::uint32_t odd = (word >> 16) & 1u;
  return static_cast<std::uint16_t>((word + 0x7fffu + odd) >> 16);
}

}  // namespace cohort
