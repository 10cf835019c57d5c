// The memory of a server as chunks, and back.
#include "server/standby/store_copy.h"

#include <sys/stat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "server/store/store_layout.h"
#include "server/store/store_mapping.h"

namespace cohort::server {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::int64_t kRows = 100'000;

/// A variable with a slot, of more than one chunk, and one that was never changed.
void fill(Store& store) {
  const VariableIndex large = store.create("large", {kRows, 8}, DType::kFloat32, 1);
  store.create("untouched", {kRows, 8}, DType::kFloat32);
  for (std::uint64_t number = 1; number <= 3; ++number) {
    store.begin();
    const Store::Change change = store.overwrite(large);
    std::iota(change.fresh_value.span<float>().begin(), change.fresh_value.span<float>().end(),
              static_cast<float>(number));
    change.fresh_slots[0].copy_from(change.fresh_value);
    const std::vector<std::byte> result(number, std::byte{1});
    store.commit(Execution{9, number}, result);
  }
  store.fence(4);
}

std::vector<StoreChunk> chunks_of(StoreCopySource& source) {
  std::vector<StoreChunk> chunks;
  while (std::optional<StoreChunk> chunk = source.next()) chunks.push_back(std::move(*chunk));
  return chunks;
}

class StoreCopies : public testing::Test {
 protected:
  static std::unique_ptr<Store> make_filled() {
    auto store = std::make_unique<Store>();
    fill(*store);
    return store;
  }

  const std::unique_ptr<Store> filled_ = make_filled();
  const Store& store_ = *filled_;
  StoreCopySource source_{store_};
  std::vector<StoreChunk> chunks_ = chunks_of(source_);
  watch::Fd file_ = make_store_file();
};

TEST_F(StoreCopies, HaveAllThatAStoreHas) {
  {
    StoreCopyTarget target(file_.get(), source_.plan());
    for (const StoreChunk& chunk : chunks_) target.write(chunk.position, chunk.bytes);
    target.finish(source_.bytes());
  }
  Store copy(file_.get());
  EXPECT_EQ(copy.identity(), store_.identity());
  ASSERT_EQ(copy.size(), 2u);
  for (VariableIndex variable = 0; variable < 2; ++variable) {
    EXPECT_EQ(copy.name(variable), store_.name(variable));
    EXPECT_EQ(copy.version(variable), store_.version(variable));
    EXPECT_TRUE(std::ranges::equal(copy.value(variable).raw(), store_.value(variable).raw()));
  }
  EXPECT_TRUE(std::ranges::equal(copy.slot(0, 0).raw(), store_.slot(0, 0).raw()));
  for (std::uint64_t number = 1; number <= 3; ++number)
    EXPECT_EQ(copy.find_commit({9, number})->result.size(), number);
  EXPECT_TRUE(copy.is_fenced(4));
  // The store is written to, where the copy had holes, too.
  copy.begin();
  copy.overwrite(1).fresh_value.fill(2.0F);
  copy.commit();
  EXPECT_EQ(copy.value(1).span<float>().back(), 2.0F);
}

TEST_F(StoreCopies, LeaveOutWhatHoldsNothing) {
  EXPECT_LT(source_.bytes(), source_.plan().file_bytes - kRows * 8 * 4);
  EXPECT_GT(chunks_.size(), 3u);
}

TEST_F(StoreCopies, AreNoStoreBeforeTheyAreComplete) {
  {
    StoreCopyTarget target(file_.get(), source_.plan());
    for (const StoreChunk& chunk : chunks_) target.write(chunk.position, chunk.bytes);
  }
  EXPECT_NE(Store(file_.get()).identity(), store_.identity());
}

TEST_F(StoreCopies, ReplaceWhatWasInTheFile) {
  { fill(*std::make_unique<Store>(file_.get())); }
  Store empty;
  StoreCopySource source(empty);
  StoreCopyTarget target(file_.get(), source.plan());
  for (const StoreChunk& chunk : chunks_of(source)) target.write(chunk.position, chunk.bytes);
  target.finish(source.bytes());
  EXPECT_EQ(Store(file_.get()).size(), 0u);
}

TEST_F(StoreCopies, RefuseChunksThatDoNotFit) {
  StoreCopyTarget target(file_.get(), source_.plan());
  const auto damaged = ThrowsMessage<DataLoss>(HasSubstr("the copy of a server's variables is damaged"));
  target.write(chunks_[0].position, chunks_[0].bytes);
  EXPECT_THAT([&] { target.write(chunks_[0].position, chunks_[0].bytes); }, damaged);
  EXPECT_THAT([&] { target.write(source_.plan().file_bytes - 1, chunks_[1].bytes); }, damaged);
  EXPECT_THAT([&] { target.write(~std::uint64_t{0}, chunks_[1].bytes); }, damaged);
  EXPECT_THAT([&] { target.finish(source_.bytes()); }, damaged) << "some are missing";
}

TEST_F(StoreCopies, RefuseABeginningOfAnotherStore) {
  StoreCopyPlan plan = source_.plan();
  ++plan.identity;
  StoreCopyTarget target(file_.get(), plan);
  for (const StoreChunk& chunk : chunks_) target.write(chunk.position, chunk.bytes);
  EXPECT_THAT([&] { target.finish(source_.bytes()); },
              ThrowsMessage<DataLoss>(HasSubstr("its beginning is that of no store")));
}

TEST_F(StoreCopies, RefuseAPlanOfNoStore) {
  EXPECT_THROW(StoreCopyTarget(file_.get(), {.identity = 1, .file_bytes = 17, .variables = 0}), DataLoss);
  EXPECT_THROW(StoreCopyTarget(file_.get(), {.identity = 1, .file_bytes = std::uint64_t{1} << 50}),
               Unavailable);
}

}  // namespace
}  // namespace cohort::server
