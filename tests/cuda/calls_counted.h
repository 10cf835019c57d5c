// Counts of calls, from the stand-in; on a real GPU there are none, and tests of them are skipped.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <dlfcn.h>

#include <gtest/gtest.h>

namespace cohort::testing {

using CallCounter = std::uint64_t (*)(const char* function);

/// Null without the stand-in.
[[nodiscard]] inline CallCounter call_counter() {
  return reinterpret_cast<CallCounter>(dlsym(RTLD_DEFAULT, "gpu_stand_in_calls"));
}

/// How often these functions of CUDA have been called, all together.
[[nodiscard]] inline std::uint64_t calls_of(std::initializer_list<const char*> functions) {
  std::uint64_t calls = 0;
  for (const char* const function : functions) calls += call_counter()(function);
  return calls;
}

/// What takes memory of the system, or makes objects of the driver.
inline constexpr std::initializer_list<const char*> kDearCalls{
    "cudaMalloc", "cudaHostAlloc", "cudaHostRegister", "cudaStreamCreateWithPriority",
    "cudaEventCreateWithFlags"};

/// What makes a thread wait for a GPU.
inline constexpr std::initializer_list<const char*> kWaitingCalls{"cudaStreamSynchronize",
                                                                  "cudaEventSynchronize",
                                                                  "cudaDeviceSynchronize",
                                                                  "cudaStreamQuery",
                                                                  "cudaEventQuery",
                                                                  "cudaMemcpy",
                                                                  "cudaFree"};

}  // namespace cohort::testing
