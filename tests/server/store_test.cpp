#include "server/store/store.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store_values.h"
#include "thrown.h"

namespace cohort::server {
namespace {

using ::cohort::testing::message_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_THAT(floats(store.value(weights)), ElementsAre(0, 0));
  store.commit();
  EXPECT_THAT(floats(store.value(weights)), ElementsAre(3, 3));
  EXPECT_EQ(store.version(weights), 1u);
}

TEST(Store, DropsVariablesOfAnAbandonedCommit) {
  Store store;
  commit_value(store, store.create("weights", {3}, DType::kFloat32), 1);
  const auto make = [&] {
    store.begin();
    const VariableIndex made = store.create("made", {1000}, DType::kFloat32, 1);
    store.require_slots(made, 2);
    EXPECT_EQ(made, 1u);
    EXPECT_THAT(floats(store.overwrite(made).old_value), Each(0));
    store.overwrite(made).fresh_value.fill(9);
  };
  make();
  store.abandon();
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(store.find("made"), std::nullopt);
  EXPECT_EQ(StoreReader(store.descriptor()).size(), 1u);
  const std::uint64_t bytes = std::filesystem::file_size(fmt::format("/proc/self/fd/{}", store.descriptor()));
  for (int i = 0; i < 1000; ++i) {
    make();
    store.abandon();
  }
  EXPECT_EQ(std::filesystem::file_size(fmt::format("/proc/self/fd/{}", store.descriptor())), bytes)
      << "its memory is used again";
  make();
  store.commit();
  EXPECT_EQ(store.name(1), "made");
  EXPECT_THAT(floats(store.value(1)), Each(9));
  EXPECT_THAT(floats(store.value(0)), ElementsAre(1, 1, 1));
}

TEST(Store, DropsAnAbandonedChange) {
  Store store;
  const VariableIndex weights = store.create("weights", {3}, DType::kFloat32);
  commit_value(store, weights, 1);
  store.begin();
  store.overwrite(weights).fresh_value.fill(9);
  store.abandon();
  EXPECT_EQ(store.version(weights), 1u);
  const std::vector<std::int64_t> rows{1};
  store.begin();
  const Store::Change change = store.change_rows(weights, rows);
  EXPECT_THAT(floats(change.fresh_value), ElementsAre(1, 1, 1)) << "what was abandoned is not in it";
  change.fresh_value.span<float>()[1] = 2;
  store.commit();
  EXPECT_THAT(floats(store.value(weights)), ElementsAre(1, 2, 1));
  EXPECT_EQ(store.version(weights), 2u);
}

// Each change of rows leaves the other copy behind by them.
TEST(Store, KeepsTheRowsOfFormerChanges) {
  Store store;
  const VariableIndex table = store.create("table", {4}, DType::kFloat32);
  for (const std::vector<std::int64_t>& rows :
       {std::vector<std::int64_t>{0}, {1, 1, 3}, {}, {2}, {0, 1, 2, 3, 0}, {3}}) {
    store.begin();
    const Store::Change change = store.change_rows(table, rows);
    EXPECT_EQ(floats(change.fresh_value), floats(change.old_value));
    EXPECT_NE(change.fresh_value.data(), change.old_value.data());
    for (const std::int64_t row : rows) change.fresh_value.span<float>()[static_cast<std::size_t>(row)] += 1;
    store.commit();
  }
  EXPECT_THAT(floats(store.value(table)), ElementsAre(3, 3, 2, 3));
}

TEST(Store, StartsASecondChangeOfACommitFromTheFirst) {
  Store store;
  const VariableIndex table = store.create("table", {3}, DType::kFloat32, 1);
  const std::vector<std::int64_t> first{0};
  const std::vector<std::int64_t> second{2};
  store.begin();
  store.change_rows(table, first).fresh_value.span<float>()[0] = 1;
  const Store::Change change = store.change_rows(table, second);
  EXPECT_EQ(change.old_value.data(), change.fresh_value.data());
  EXPECT_EQ(change.old_slots[0].data(), change.fresh_slots[0].data());
  change.fresh_value.span<float>()[2] = 2;
  store.commit();
  EXPECT_THAT(floats(store.value(table)), ElementsAre(1, 0, 2));
  EXPECT_EQ(store.version(table), 1u) << "one commit, one change";
  store.begin();
  store.overwrite(table).fresh_value.fill(5);
  store.change_rows(table, second).fresh_value.span<float>()[2] += 1;
  store.commit();
  EXPECT_THAT(floats(store.value(table)), ElementsAre(5, 5, 6));
}

TEST(Store, AddsSlotsOfZeros) {
  Store store;
  const VariableIndex weights = store.create("weights", {2}, DType::kFloat32);
  commit_value(store, weights, 1);
  store.require_slots(weights, 2);
  store.require_slots(weights, 1);
  EXPECT_EQ(store.slots(weights), 2u);
  EXPECT_THAT(floats(store.slot(weights, 1)), ElementsAre(0, 0));
  store.begin();
  const Store::Change change = store.overwrite(weights);
  change.fresh_value.fill(2);
  change.fresh_slots[0].fill(3);
  change.fresh_slots[1].fill(4);
  store.commit();
  EXPECT_THAT(floats(store.slot(weights, 0)), ElementsAre(3, 3));
  EXPECT_THAT(floats(store.slot(weights, 1)), ElementsAre(4, 4));
}

TEST(Store, RemembersCommitsUntilTheyAreForgotten) {
  Store store;
  const VariableIndex weights = store.create("weights", {2}, DType::kFloat32);
  for (std::uint64_t number = 1; number <= 200; ++number)
    commit_value(store, weights, 1, Execution{7, number}, std::to_string(number));
  ASSERT_TRUE(store.find_commit({7, 150}));
  EXPECT_EQ(store.find_commit({7, 150})->result, bytes_of("150"));
  EXPECT_EQ(store.find_commit({8, 150}), std::nullopt);
  EXPECT_EQ(store.commits_of(7).size(), 200u);
  EXPECT_TRUE(store.commits_of(8).empty());
  store.forget(7, 150);
  EXPECT_EQ(store.find_commit({7, 150}), std::nullopt);
  ASSERT_EQ(store.commits_of(7).size(), 50u);
  EXPECT_EQ(store.commits_of(7).front().execution.number, 151u);
}

TEST(Store, TakesLargeResultsAndNone) {
  Store store;
  const std::string large(std::size_t{3} << 20, 'x');
  store.begin();
  store.commit(Execution{1, 1}, bytes_of(large));
  store.begin();
  store.commit(Execution{1, 2});
  EXPECT_EQ(store.find_commit({1, 1})->result, bytes_of(large));
  EXPECT_TRUE(store.find_commit({1, 2})->result.empty());
}

std::uint64_t file_bytes(const Store& store) {
  struct stat status {};
  EXPECT_EQ(::fstat(store.descriptor(), &status), 0);
  return static_cast<std::uint64_t>(status.st_size);
}

TEST(Store, UsesTheMemoryOfForgottenCommitsAgain) {
  Store store;
  std::optional<std::uint64_t> bytes;
  for (std::uint64_t number = 1; number <= 2000; ++number) {
    store.begin();
    store.commit(Execution{1, number}, std::vector<std::byte>(100 + number * 7919 % 64000));
    if (number > 10) store.forget(1, number - 10);
    if (number == 500) bytes = file_bytes(store);
  }
  EXPECT_EQ(file_bytes(store), bytes);
}

TEST(Store, MakesZerosOfMemoryThatWasUsed) {
  Store store;
  for (std::uint64_t number = 1; number <= 3; ++number) {
    store.begin();
    store.commit(Execution{1, number}, std::vector<std::byte>(5000, std::byte{0xff}));
  }
  store.forget(1, 3);
  const VariableIndex weights = store.create("weights", {500}, DType::kFloat32);
  store.require_slots(weights, 1);
  EXPECT_THAT(floats(store.value(weights)), Each(0));
  EXPECT_THAT(floats(store.slot(weights, 0)), Each(0));
  for (std::uint64_t number = 1; number <= 200; ++number) {
    store.begin();
    store.commit(Execution{2, number});
  }
  EXPECT_EQ(Store(store.descriptor()).commits_of(2).size(), 200u);
}

TEST(Store, RemembersWhichIncarnationsAreFenced) {
  Store store;
  store.fence(7);
  store.fence(7);
  EXPECT_TRUE(store.is_fenced(7));
  EXPECT_FALSE(store.is_fenced(8));
  EXPECT_TRUE(Store(store.descriptor()).is_fenced(7));
}

TEST(Store, CommitsAnExecutionOnce) {
  Store store;
  const VariableIndex weights = store.create("weights", {1}, DType::kFloat32);
  commit_value(store, weights, 1, Execution{7, 1});
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument,
                         [&] {
                           commit_value(store, weights, 2, Execution{7, 1});
                         }),
              HasSubstr("committed before"));
  store.abandon();
  EXPECT_THAT(floats(store.value(weights)), ElementsAre(1));
}

TEST(Store, RefusesWhatIsNotThere) {
  Store store;
  const VariableIndex weights = store.create("weights", {2, 2}, DType::kFloat32);
  const VariableIndex number = store.create("number", {}, DType::kInt64);
  const auto refusal = [&](auto&& call) { return message_of(ErrorCode::kInvalidArgument, call); };
  EXPECT_THAT(refusal([&] { store.create("weights", {1}, DType::kInt8); }),
              AllOf(HasSubstr("\"weights\" (int8[1])"), HasSubstr("float32[2, 2]")));
  EXPECT_THAT(refusal([&] { store.create("many", {1}, DType::kInt8, 18); }), HasSubstr("17 are possible"));
  EXPECT_THAT(refusal([&] { store.require_slots(weights, 18); }), HasSubstr("17 are possible"));
  EXPECT_THAT(refusal([&] { static_cast<void>(store.value(2)); }), HasSubstr("no variable 2"));
  EXPECT_THAT(refusal([&] { static_cast<void>(store.slot(weights, 0)); }), HasSubstr("no slot 0"));
  store.begin();
  const std::vector<std::int64_t> rows{1, 2};
  const std::vector<std::int64_t> negative{-1};
  EXPECT_THAT(refusal([&] { static_cast<void>(store.change_rows(weights, rows)); }), HasSubstr("no row 2"));
  EXPECT_THAT(refusal([&] { static_cast<void>(store.change_rows(weights, negative)); }),
              HasSubstr("no row -1"));
  EXPECT_THAT(refusal([&] { static_cast<void>(store.change_rows(number, rows)); }), HasSubstr("no row 1"));
  store.commit();
  EXPECT_EQ(store.version(weights), 0u);
}

TEST(Store, HasVariablesWithoutElements) {
  Store store;
  const VariableIndex empty = store.create("", {0, 3}, DType::kFloat64, 2);
  const VariableIndex number = store.create("number", {}, DType::kFloat32);
  commit_value(store, empty, 1);
  commit_value(store, number, 2);
  EXPECT_EQ(store.value(empty).elements(), 0u);
  EXPECT_EQ(store.version(empty), 1u);
  EXPECT_EQ(store.value(number).item<float>(), 2);
  const Store again(store.descriptor());
  EXPECT_EQ(again.find(""), empty);
  EXPECT_EQ(again.value(number).item<float>(), 2);
}

TEST(Store, SaysWhichVariableDoesNotFit) {
  Store store;
  commit_value(store, store.create("small", {2}, DType::kFloat32), 1);
  const std::uint64_t bytes = file_bytes(store);
  EXPECT_THAT(
      message_of(ErrorCode::kUnavailable,
                 [&] { store.create("large", {std::int64_t{1} << 44}, DType::kFloat64); }),
      AllOf(HasSubstr("variable \"large\" (float64[17592186044416])"), HasSubstr("takes 2814749767")));
  EXPECT_THAT(message_of(ErrorCode::kUnavailable,
                         [&] { store.create("larger", {std::int64_t{1} << 62}, DType::kFloat64); }),
              HasSubstr("larger"));
  EXPECT_EQ(store.size(), 1u);
  EXPECT_EQ(file_bytes(store), bytes);
  EXPECT_THAT(floats(store.value(0)), ElementsAre(1, 1));
}

TEST(Store, StaysWithinALimitOfFiles) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto limit = [&](rlim_t bytes) {
    const rlimit lower{bytes, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &lower), 0);
  };
  limit(std::uint64_t{1} << 20);
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [] { const Store store; }),
              HasSubstr("1 MiB may be reserved"));
  limit(std::uint64_t{20} << 20);
  {
    Store store;
    store.create("small", {1000}, DType::kFloat32);
    EXPECT_THAT(message_of(ErrorCode::kUnavailable,
                           [&] { store.create("large", {std::int64_t{4} << 20}, DType::kInt8); }),
                AllOf(HasSubstr("large"), HasSubstr("of the 20971520 that its file can have")));
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST(Store, LeavesNothingBehind) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  std::optional<Tensor> kept;
  {
    Store store;
    kept = store.value(store.create("weights", {2}, DType::kFloat32));
  }
  EXPECT_THAT(floats(*kept), ElementsAre(0, 0)) << "a tensor keeps the memory";
  kept.reset();
  EXPECT_EQ(descriptors(), before);
  std::ifstream maps("/proc/self/maps");
  const std::string mapped{std::istreambuf_iterator<char>(maps), {}};
  EXPECT_EQ(mapped.find("cohort-store"), std::string::npos);
}

}  // namespace
}  // namespace cohort::server
