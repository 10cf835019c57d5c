// The machine's own NCCL, where there is one: it has what Cohort calls, also without a GPU.
#include <cohort/nccl/library.h>

#include <filesystem>

#include <gtest/gtest.h>

#include <cohort/base/error.h>

namespace cohort::nccl {
namespace {

TEST(Library, OfTheMachineIsAtLeastAsNewAsItsHeader) {
  try {
    const LibraryInfo info = library();
    EXPECT_TRUE(std::filesystem::exists(info.path)) << info.path;
    EXPECT_FALSE(info.version.empty());
    EXPECT_EQ(library().path, info.path) << "it is opened once";
  } catch (const Unavailable& error) {
    GTEST_SKIP() << error.what();
  }
}

}  // namespace
}  // namespace cohort::nccl
