#include "cluster/launcher.h"

#include <gtest/gtest.h>

namespace cohort::testing {
namespace {

std::optional<int> listed(const char* list) { return visible_gpus({{"CUDA_VISIBLE_DEVICES", list}}); }

TEST(VisibleGpus, AreThoseThatAreListed) {
  EXPECT_EQ(listed("0"), 1);
  EXPECT_EQ(listed("2,3,10"), 3);
  EXPECT_EQ(listed("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-GPU-8932f937/1/2"), 2);
  EXPECT_EQ(listed(""), 0);
}

TEST(VisibleGpus, EndAtTheFirstThatIsNone) {
  EXPECT_EQ(listed("-1"), 0);
  EXPECT_EQ(listed("0,1,-1,2"), 2);
  EXPECT_EQ(listed("NoDevFiles"), 0);
  EXPECT_EQ(listed("0,,1"), 1);
}

TEST(VisibleGpus, AreSlurmsWhereNoneAreListed) {
  EXPECT_EQ(visible_gpus({{"SLURM_GPUS_ON_NODE", "4"}}), 4);
  EXPECT_EQ(visible_gpus({{"SLURM_GPUS_ON_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "1"}}), 1);
  EXPECT_EQ(visible_gpus({}), std::nullopt);
  EXPECT_EQ(visible_gpus({{"SLURM_GPUS_ON_NODE", "all"}}), std::nullopt);
  EXPECT_EQ(visible_gpus({{"SLURM_GPUS_ON_NODE", ""}}), std::nullopt);
}

}  // namespace
}  // namespace cohort::testing
