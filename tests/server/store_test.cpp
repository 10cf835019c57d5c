#include "server/store.h"

#include <vector>

#include <gtest/gtest.h>

#include "thrown.h"

namespace cohort::server {
namespace {

using ::cohort::testing::message_of;

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

TEST(Store, MakesVariablesOfZeros) {
  Store store;
  const VariableIndex weights = store.create("weights", {2, 3}, DType::kFloat32, 1);
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.find("weights"), weights);
  EXPECT_EQ(store.find("bias"), std::nullopt);
  EXPECT_EQ(store.name(weights), "weights");
  EXPECT_EQ(store.slots(weights), 1u);
  EXPECT_EQ(store.version(weights), 0u);
  EXPECT_TRUE(bitwise_equal(store.value(weights), Tensor::zeros({2, 3}, DType::kFloat32)));
  EXPECT_TRUE(bitwise_equal(store.slot(weights, 0), Tensor::zeros({2, 3}, DType::kFloat32)));
}

TEST(Store, ShowsAChangeOnlyOnceItIsCommitted) {
  Store store;
  const VariableIndex weights = store.create("weights", {2}, DType::kFloat32);
  store.begin();
  store.overwrite(weights).fresh_value.fill(3);
  EXPECT_EQ(store.value(weights).span<float>()[0], 0);
  store.commit();
  EXPECT_EQ(store.value(weights).span<float>()[0], 3);
  EXPECT_EQ(store.version(weights), 1u);
}

TEST(Store, RemembersCommitsUntilTheyAreForgotten) {
  Store store;
  const VariableIndex weights = store.create("weights", {2}, DType::kFloat32);
  for (std::uint64_t number = 1; number <= 200; ++number) {
    store.begin();
    store.overwrite(weights).fresh_value.fill(static_cast<double>(number));
    store.commit(Execution{7, number}, bytes_of(std::to_string(number)));
  }
  ASSERT_TRUE(store.find_commit({7, 150}));
  EXPECT_EQ(store.find_commit({7, 150})->result, bytes_of("150"));
  EXPECT_EQ(store.find_commit({8, 150}), std::nullopt);
  EXPECT_EQ(store.commits_of(7).size(), 200u);
  store.forget(7, 150);
  EXPECT_EQ(store.find_commit({7, 150}), std::nullopt);
  EXPECT_EQ(store.commits_of(7).front().execution.number, 151u);
}

}  // namespace
}  // namespace cohort::server
