#include <cohort/collective/copy_bytes.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "guarded_buffer.h"
#include "simd_targets_test.h"

namespace cohort {
namespace {

using Place = GuardedBuffer::Place;

class CopyBytes : public OnEveryTarget {};

TEST_P(CopyBytes, CopiesAllBytesAndNoMore) {
  std::vector<std::size_t> sizes(301);
  std::iota(sizes.begin(), sizes.end(), 0);
  sizes.insert(sizes.end(), {1000, 4096, 4099, 65537, (1 << 20) + 3});
  std::mt19937 random(1);
  for (const std::size_t bytes : sizes) {
    for (const Place place : {Place::kAtLine, Place::kPastLine, Place::kAtGuardPage}) {
      for (const CopyHint hint : {CopyHint::kCached, CopyHint::kStream}) {
        GuardedBuffer from(bytes, 1, Place::kAtGuardPage), to(bytes, 1, place);
        std::generate_n(from.data(), bytes, [&] { return static_cast<std::byte>(random()); });
        copy_bytes(to.data(), from.data(), bytes, hint);
        ASSERT_TRUE(std::ranges::equal(to.bytes(), from.bytes())) << bytes;
        ASSERT_TRUE(to.is_intact()) << bytes;
      }
    }
  }
}

TEST_P(CopyBytes, LeavesABufferCopiedToItself) {
  GuardedBuffer buffer(100, 1, Place::kAtLine);
  std::fill_n(buffer.data(), 100, std::byte{7});
  copy_bytes(buffer.data(), buffer.data(), 100);
  EXPECT_THAT(buffer.bytes(), ::testing::Each(std::byte{7}));
}

INSTANTIATE_TEST_SUITE_P(, CopyBytes, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), target_name);

}  // namespace
}  // namespace cohort
