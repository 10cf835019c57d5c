#include "server/store_reader.h"

#include <array>

#include <gtest/gtest.h>

namespace cohort::server {
namespace {

TEST(StoreReader, ReadsWhatWasCommitted) {
  Store store;
  const StoreReader reader(store.descriptor());
  const VariableIndex weights = store.create("weights", {2}, DType::kFloat32);
  store.begin();
  store.overwrite(weights).fresh_value.fill(3);
  std::array<float, 2> read{5, 5};
  EXPECT_EQ(reader.read(weights, std::as_writable_bytes(std::span(read))), 0u);
  EXPECT_EQ(read, (std::array<float, 2>{0, 0}));
  store.commit();
  EXPECT_EQ(reader.read(weights, std::as_writable_bytes(std::span(read))), 1u);
  EXPECT_EQ(read, (std::array<float, 2>{3, 3}));
}

}  // namespace
}  // namespace cohort::server
