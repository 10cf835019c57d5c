// Spans of the program are ranges for a profiler that has its library loaded: nvtx_profiler.cpp stands for
// one.
#include <dlfcn.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include <cohort/base/timeline_span.h>
#include <cohort/device/tensor.h>

namespace cohort {
namespace {

TEST(Nvtx, ShowsSpansOnceGpusAreUsed) {
  const char* const profiler = std::getenv("NVTX_INJECTION64_PATH");
  if (profiler == nullptr) GTEST_SKIP() << "no profiler has started this process";
  static_cast<void>(Tensor::zeros({4}, DType::kFloat32, Device("GPU:0")));
  {
    const TimelineSpan outer("step");
    const TimelineSpan inner("augment");
  }
  void* const library = ::dlopen(profiler, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto ranges = reinterpret_cast<const char* (*)()>(::dlsym(library, "nvtx_ranges"));
  ASSERT_NE(ranges, nullptr);
  EXPECT_STREQ(ranges(), "(step(augment))");
  ::dlclose(library);
}

}  // namespace
}  // namespace cohort
