// Which tensors share a collective.
#include <gmock/gmock.h>

#include <cohort/collective/packing.h>

namespace cohort::testing {
namespace {

using ::testing::ElementsAre;

TEST(PackingCase, Case077_FillsAPackBeyondItsLimit) {
  const auto bytes = [](std::int64_t count) { return TensorSpec{{count}, DType::kUInt8}; };
  // The list is packed from its end: 128, 32 and 800 bytes, then 4.
  EXPECT_THAT(make_packs(std::vector{bytes(4), bytes(800), bytes(32), bytes(128)}, 200),
              ElementsAre(ElementsAre(3, 2, 1), ElementsAre(0)));
}

}  // namespace
}  // namespace cohort::testing
