// The instruction sets for which kernels are compiled. Include before any header of Highway.
//
// On x86-64: the baseline, AVX2 and AVX-512 (F, BW, DQ, VL). SSE4 would serve only processors
// from before 2013, and what the later AVX-512 sets add, these kernels do not use.
// Vectors of SVE and RISC-V have no size known to the compiler, so they cannot be members of
// the pairs in which 16-bit floats are computed; processors with SVE run the NEON kernels.
#pragma once

// NOLINTBEGIN(readability-identifier-naming): Highway's names
#define HWY_DISABLED_TARGETS                                                                              \
  (HWY_SSE2 | HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_AVX10_2 | HWY_SVE | \
   HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#include <hwy/detect_targets.h>

// Targets that this version of Highway does not have.
#ifndef HWY_SSE2
#define HWY_SSE2 0
#endif
#ifndef HWY_AVX3_ZEN4
#define HWY_AVX3_ZEN4 0
#endif
#ifndef HWY_AVX3_SPR
#define HWY_AVX3_SPR 0
#endif
#ifndef HWY_AVX10_2
#define HWY_AVX10_2 0
#endif
// NOLINTEND(readability-identifier-naming)
