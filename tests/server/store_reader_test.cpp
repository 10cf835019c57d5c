#include "server/store/store.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stopping_page.h"
#include "store_values.h"
#include "thrown.h"

namespace cohort::server {
namespace {

using ::cohort::testing::message_of;
using ::cohort::testing::page_bytes;
using ::cohort::testing::StoppingPage;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Elements>
std::span<std::byte> raw(Elements& elements) {
  return std::as_writable_bytes(std::span(elements));
}

TEST(StoreReader, ReadsWhatWasCommitted) {
  Store store;
  const StoreReader reader(store.descriptor());
  const VariableIndex weights = store.create("weights", {2}, DType::kFloat32);
  store.begin();
  store.overwrite(weights).fresh_value.fill(3);
  std::array<float, 2> read{5, 5};
  EXPECT_EQ(reader.read(weights, raw(read)), 0u);
  EXPECT_THAT(read, ElementsAre(0, 0));
  store.commit();
  EXPECT_EQ(reader.read(weights, raw(read)), 1u);
  EXPECT_THAT(read, ElementsAre(3, 3));
  EXPECT_EQ(reader.version(weights), 1u);
}

TEST(StoreReader, ReadsRows) {
  Store store;
  const VariableIndex table = store.create("table", {4, 2}, DType::kFloat32);
  store.begin();
  const Tensor fresh = store.overwrite(table).fresh_value;
  std::iota(fresh.span<float>().begin(), fresh.span<float>().end(), 0.0F);
  store.commit();
  const StoreReader reader(store.descriptor());
  const std::vector<std::int64_t> rows{3, 0, 3};
  std::array<float, 6> read{};
  EXPECT_EQ(reader.read_rows(table, rows, raw(read)), 1u);
  EXPECT_THAT(read, ElementsAre(6, 7, 0, 1, 6, 7));
}

TEST(StoreReader, SeesVariablesThatAreMadeLater) {
  Store store;
  const StoreReader reader(store.descriptor());
  EXPECT_THAT(message_of(ErrorCode::kInvalidArgument, [&] { static_cast<void>(reader.version(0)); }),
              HasSubstr("no variable 0"));
  std::vector<std::uint8_t> read(std::size_t{3} << 20, 1);
  const VariableIndex large = store.create("large", {std::int64_t{3} << 20}, DType::kUInt8);
  EXPECT_EQ(reader.read(large, raw(read)), 0u);
  EXPECT_EQ(std::ranges::count(read, 0), std::ssize(read));
}

TEST(StoreReader, RefusesPlacesOfAnotherSize) {
  Store store;
  const VariableIndex table = store.create("table", {4, 2}, DType::kFloat32);
  const StoreReader reader(store.descriptor());
  std::array<float, 2> two{};
  const std::vector<std::int64_t> one_row{1};
  const std::vector<std::int64_t> two_rows{1, 2};
  const std::vector<std::int64_t> no_row{4};
  EXPECT_TRUE(reader.read_rows(table, one_row, raw(two)));
  const auto refusal = [&](auto&& call) { return message_of(ErrorCode::kInvalidArgument, call); };
  EXPECT_THAT(refusal([&] { static_cast<void>(reader.read(table, raw(two))); }), HasSubstr("32 bytes"));
  EXPECT_THAT(refusal([&] { static_cast<void>(reader.read_rows(table, two_rows, raw(two))); }),
              HasSubstr("2 rows of 8 bytes"));
  EXPECT_THAT(refusal([&] { static_cast<void>(reader.read_rows(table, no_row, raw(two))); }),
              HasSubstr("no row 4"));
}

/// A read of two pages that stops between them, until `meanwhile` has been done.
class InterruptedRead : public ::testing::Test {
 protected:
  void read_while(const std::function<void()>& meanwhile) {
    StoppingPage place({.pages = 2, .page = 1});
    place.arm();
    std::thread thread([&] { version_ = reader_.read(variable_, std::as_writable_bytes(place.floats())); });
    place.wait_until_reached();
    meanwhile();
    place.let_go_on();
    thread.join();
    read_ = {place.floats().begin(), place.floats().end()};
  }

  Store store_;
  StoreReader reader_{store_.descriptor()};
  VariableIndex variable_ = store_.create(
      "variable", {static_cast<std::int64_t>(2 * page_bytes() / sizeof(float))}, DType::kFloat32);
  std::optional<std::uint64_t> version_;
  std::vector<float> read_;
};

TEST_F(InterruptedRead, KeepsTheCopyThatTheNextChangeLeavesAlone) {
  read_while([&] { commit_value(store_, variable_, 1); });
  EXPECT_EQ(version_, 0u);
  EXPECT_THAT(read_, Each(0));
}

TEST_F(InterruptedRead, BeginsAnewOnceItsCopyIsWritten) {
  read_while([&] {
    commit_value(store_, variable_, 1);
    store_.begin();
    store_.overwrite(variable_).fresh_value.fill(2);
  });
  EXPECT_EQ(version_, 1u);
  EXPECT_THAT(read_, Each(1));
}

// The sequence is as high as before then, but the copy that is read was written.
TEST_F(InterruptedRead, BeginsAnewAlsoWhenTheChangeIsAbandoned) {
  read_while([&] {
    commit_value(store_, variable_, 1);
    store_.begin();
    store_.overwrite(variable_).fresh_value.fill(2);
    store_.abandon();
  });
  EXPECT_EQ(version_, 1u);
  EXPECT_THAT(read_, Each(1));
}

TEST_F(InterruptedRead, BeginsAnewAlsoWhenTheServerIsStartedAgain) {
  read_while([&] {
    commit_value(store_, variable_, 1);
    store_.begin();
    store_.overwrite(variable_).fresh_value.fill(2);
    const Store next(store_.descriptor());
  });
  EXPECT_EQ(version_, 1u);
  EXPECT_THAT(read_, Each(1));
}

// Rows come in pairs whose sum is zero in every version.
constexpr std::int64_t kPairs = 1000;

void write_pairs(Store& store, VariableIndex pairs, std::int64_t number) {
  store.begin();
  if (number % 4 == 0) {
    const auto fresh = store.overwrite(pairs).fresh_value.span<std::int64_t>();
    std::fill(fresh.begin(), fresh.begin() + kPairs, number);
    std::fill(fresh.begin() + kPairs, fresh.end(), -number);
  } else {
    const std::array rows{number % kPairs, number % kPairs + kPairs};
    const auto fresh = store.change_rows(pairs, rows).fresh_value.span<std::int64_t>();
    fresh[static_cast<std::size_t>(rows[0])] += number;
    fresh[static_cast<std::size_t>(rows[1])] -= number;
  }
  if (number % 7 == 0) return store.abandon();
  store.commit();
}

/// Reads until `is_over`, and once more. Whether each read was whole, and none older than the one before.
bool reads_whole_values(const StoreReader& reader, VariableIndex pairs,
                        const std::function<bool()>& is_over) {
  std::vector<std::int64_t> read(2 * kPairs);
  std::uint64_t newest = 0;
  for (bool last = false;; last = is_over()) {
    const std::optional<std::uint64_t> version = reader.read(pairs, raw(read));
    if (last) return version == reader.version(pairs);
    if (!version) continue;
    if (*version < newest) return false;
    newest = *version;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      if (read[pair] + read[pair + kPairs] != 0) return false;
    }
  }
}

TEST(StoreReader, NeverSeesATornValueInThreads) {
  Store store;
  const VariableIndex pairs = store.create("pairs", {2 * kPairs}, DType::kInt64);
  const StoreReader reader(store.descriptor());
  std::atomic<bool> is_over = false;
  std::atomic<int> whole = 0;
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back(
        [&] { whole += reads_whole_values(reader, pairs, [&] { return is_over.load(); }) ? 1 : 0; });
  }
  for (std::int64_t number = 1; number <= 20000; ++number) write_pairs(store, pairs, number);
  is_over = true;
  for (std::thread& thread : readers) thread.join();
  EXPECT_EQ(whole, 3);
}

TEST(StoreReader, NeverSeesATornValueInOtherProcesses) {
  Store store;
  const VariableIndex pairs = store.create("pairs", {2 * kPairs}, DType::kInt64);
  const VariableIndex end = store.create("end", {}, DType::kBool);
  std::vector<pid_t> readers;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const StoreReader reader(store.descriptor());
      const bool whole = reads_whole_values(reader, pairs, [&] { return reader.version(end) != 0; });
      ::_exit(whole ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    readers.push_back(child);
  }
  for (std::int64_t number = 1; number <= 20000; ++number) write_pairs(store, pairs, number);
  commit_value(store, end, 1);
  for (const pid_t child : readers) {
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace cohort::server
