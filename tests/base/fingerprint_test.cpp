#include <cohort/base/fingerprint.h>

#include <cstdint>
#include <set>

#include <gtest/gtest.h>

namespace cohort::testing {
namespace {

TEST(AFingerprint, IsThatOfItsWordsInTheirOrder) {
  EXPECT_EQ(Fingerprint().add(1).add(2).value(), Fingerprint().add(1).add(2).value());
  EXPECT_NE(Fingerprint().add(1).add(2).value(), Fingerprint().add(2).add(1).value());
  EXPECT_NE(Fingerprint().add(0).value(), Fingerprint().add(0).add(0).value());
  EXPECT_EQ(fingerprint_of("assign"), Fingerprint().add("assign").value());
  EXPECT_NE(fingerprint_of("assign"), fingerprint_of("assign_add"));
}

// A fingerprint is itself a word of others, among them such that begin with its own words.
TEST(AFingerprint, DoesNotCancelOutAsAWordAfterItsOwnWords) {
  std::set<std::uint64_t> values{0};
  int fingerprints = 0;
  for (std::uint64_t first = 0; first < 16; ++first) {
    for (std::uint64_t second = 0; second < 16; ++second) {
      Fingerprint fingerprint;
      fingerprint.add(first).add(second);
      values.insert(fingerprint.value());
      values.insert(fingerprint.add(fingerprint.value()).value());
      fingerprints += 2;
    }
  }
  EXPECT_EQ(values.size(), static_cast<std::size_t>(fingerprints) + 1);
}

}  // namespace
}  // namespace cohort::testing
