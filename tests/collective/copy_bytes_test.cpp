#include <cohort/collective/copy_bytes.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "kernel_test.h"

namespace cohort {
namespace {

using Place = GuardedBuffer::Place;

class CopyBytes : public OnEveryTarget {};

TEST_P(CopyBytes, CopiesAllBytesAndNoMore) {
  std::vector<std::size_t> sizes(301);
  std::iota(sizes.begin(), sizes.end(), 0);
  sizes.insert(sizes.end(), {1000, 4096, 4099, 65537, (1 << 20) + 3});
  std::mt19937 random(1);
  GuardedBuffer from(sizes.back()), to(sizes.back());
  for (const std::size_t bytes : sizes) {
    for (const Place place : {Place::kAtLine, Place::kPastLine, Place::kAtGuardPage}) {
      for (const CopyHint hint : {CopyHint::kCached, CopyHint::kStream}) {
        std::generate_n(from.place(Place::kAtGuardPage, bytes, 1), bytes,
                        [&] { return static_cast<std::byte>(random()); });
        copy_bytes(to.place(place, bytes, 1), from.data(), bytes, hint);
        ASSERT_TRUE(std::ranges::equal(to.bytes(), from.bytes())) << bytes;
        ASSERT_TRUE(to.is_intact()) << bytes;
      }
    }
  }
}

TEST_P(CopyBytes, LeavesABufferCopiedToItself) {
  std::vector<std::byte> bytes(100, std::byte{7});
  copy_bytes(bytes.data(), bytes.data(), bytes.size());
  EXPECT_THAT(bytes, ::testing::Each(std::byte{7}));
}

INSTANTIATE_TEST_SUITE_P(, CopyBytes, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), target_name);

}  // namespace
}  // namespace cohort
