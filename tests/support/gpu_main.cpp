// The main of tests that need GPUs: those of the machine, or of the stand-in (tests/stand_in).
// Without any, the program says so and ends as CTest's SKIP_RETURN_CODE expects.
#include <cstdio>

#include <gtest/gtest.h>

#include <cohort/cuda/devices.h>

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (cohort::cuda::devices().empty()) {
    std::printf("skipped: this process sees no GPU: %s\n", cohort::cuda::why_no_devices().c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
