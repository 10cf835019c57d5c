// Tests that run once for each instruction set that kernels are compiled for and that this
// processor has.
#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "../../src/collective/kernels/simd_targets.h"

#include <hwy/targets.h>

namespace cohort {

class OnEveryTarget : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string target_name(const ::testing::TestParamInfo<std::int64_t>& target) {
  return hwy::TargetName(target.param);
}

}  // namespace cohort
