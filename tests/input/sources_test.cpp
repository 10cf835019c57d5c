#include <filesystem>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>

#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

TEST(Range, CountsFromStartToStop) {
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(4)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(2, 5)), ElementsAre(2, 3, 4));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(0, 7, 3)), ElementsAre(0, 3, 6));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(0, 6, 3)), ElementsAre(0, 3));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(5, 0, -2)), ElementsAre(5, 3, 1));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(5, 0)), IsEmpty());
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(0)), IsEmpty());
  EXPECT_EQ(Dataset<Tensor>::range(10).cardinality(), Cardinality::of(10));
}

TEST(Range, GivesScalarsAndVectorsOfInt64) {
  for (const Tensor& element : Dataset<Tensor>::range(3)) EXPECT_EQ(describe(element), "int64[]");
  for (const Tensor& batch : Dataset<Tensor>::range(4).batch(4)) EXPECT_EQ(describe(batch), "int64[4]");
  for (const Tensor& batch : Dataset<Tensor>::range(4).shuffle().batch(4))
    EXPECT_EQ(describe(batch), "int64[4]");
}

TEST(Range, GoesAsFarAsNumbersDo) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(kMost - 2, kMost)), ElementsAre(kMost - 2, kMost - 1));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(kMost, 0, kLeast)), ElementsAre(kMost));
  EXPECT_THAT(pass_of(Dataset<Tensor>::range(kLeast, kMost, kMost)), ElementsAre(kLeast, -1, kMost - 1));
  EXPECT_THROW(static_cast<void>(Dataset<Tensor>::range(kLeast, kMost)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(Dataset<Tensor>::range(0, 1, 0)), InvalidArgument);
}

TEST(FromTensors, IsOneElement) {
  const auto dataset = Dataset<Example>::from_tensors({range(6).reshape({3, 2}), range(3)});
  EXPECT_EQ(dataset.cardinality(), Cardinality::of(1));
  for (int pass = 0; pass < 2; ++pass) {
    int count = 0;
    for (const Example& example : dataset) {
      EXPECT_EQ(example.image.shape(), (Shape{3, 2}));
      ++count;
    }
    EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(steps_of(Dataset<Tensor>::from_tensors(range(2)).repeat(2)), (Steps{{0, 1}, {0, 1}}));
}

TEST(FromGenerator, StartsAnewInEachPass) {
  const auto dataset = counted_dataset(3);
  EXPECT_THAT(pass_of(dataset), ElementsAre(0, 1, 2));
  EXPECT_THAT(pass_of(dataset), ElementsAre(0, 1, 2));
  EXPECT_THAT(pass_of(counted_dataset(0)), IsEmpty());
  EXPECT_EQ(dataset.cardinality(), Cardinality::unknown());
}

TEST(FromGenerator, IsNotCalledAgainAfterItsEnd) {
  int calls = 0;
  const auto dataset = Dataset<std::string>::from_generator([&] {
    return [&calls]() -> std::optional<std::string> {
      ++calls;
      return std::nullopt;
    };
  });
  const auto elements = dataset.node()->iterate(detail::Pass(0));
  for (int call = 0; call < 3; ++call) EXPECT_FALSE(elements->next());
  EXPECT_EQ(calls, 1);
}

/// A folder with empty files, as long as this object lives.
class Folder {
 public:
  explicit Folder(const std::vector<std::string>& names)
      : path_(::testing::TempDir() + "cohort_files_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
    for (const std::string& name : names) std::ofstream(in(name)) << name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] std::string in(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

std::vector<std::string> strings_of(const Dataset<std::string>& dataset) {
  std::vector<std::string> strings;
  for (const std::string& string : dataset) strings.push_back(string);
  return strings;
}

TEST(ListFiles, SortsWhatMatches) {
  const Folder folder({"b.txt", "a.txt", "c.csv", "d.txt"});
  const auto files = Dataset<std::string>::list_files(folder.in("*.txt"));
  EXPECT_THAT(strings_of(files), ElementsAre(folder.in("a.txt"), folder.in("b.txt"), folder.in("d.txt")));
  EXPECT_THAT(strings_of(Dataset<std::string>::list_files(
                  {folder.in("c.csv"), folder.in("[ab].txt"), folder.in("b.txt")})),
              ElementsAre(folder.in("a.txt"), folder.in("b.txt"), folder.in("c.csv")));
  EXPECT_EQ(files.cardinality(), Cardinality::of(3));
}

TEST(ListFiles, NamesThePatternThatNothingMatches) {
  const Folder folder({"a.txt"});
  EXPECT_THAT(
      [&] {
        return Dataset<std::string>::list_files({folder.in("a.txt"), folder.in("b*")});
      },
      ThrowsMessage<Unavailable>(HasSubstr(folder.in("b*"))));
}

TEST(ListFiles, IsDividedAmongWorkers) {
  const Folder folder({"a", "b", "c", "d", "e"});
  const auto names = Dataset<std::string>::list_files(folder.in("*")).map([](const std::string& path) {
    return std::filesystem::path(path).filename().string();
  });
  const auto part = [&](int count, int index) {
    return strings_of(Dataset<std::string>(names.node()->with_files_of({count, index})));
  };
  EXPECT_THAT(part(2, 0), ElementsAre("a", "c", "e"));
  EXPECT_THAT(part(2, 1), ElementsAre("b", "d"));
  EXPECT_THAT(part(5, 4), ElementsAre("e"));
  for (const int index : {0, 5}) {
    EXPECT_THAT([&] { return part(6, index); },
                ThrowsMessage<InvalidArgument>(
                    AllOf(HasSubstr("5 files, 6 workers (the first file is '" + folder.in("a") + "')"),
                          HasSubstr("AutoShardPolicy::kData"))))
        << "also on the worker that would have a file";
  }
}

TEST(ListFiles, IsFoundUnderEveryTransformation) {
  const Folder folder({"a", "b"});
  const auto files = Dataset<std::string>::list_files(folder.in("*"));
  const auto numbers =
      files.map([](const std::string& path) { return Tensor::scalar(std::int64_t{path.back()}); });
  const auto read = [](const std::string& path) {
    return Dataset<Tensor>::range(path.back(), path.back() + 2);
  };
  const std::pair<Dataset<Tensor>, Rows> cases[] = {
      {numbers.filter([](const Tensor&) { return true; }), {'b'}},
      {numbers.shuffle().repeat(2), {'b', 'b'}},
      {numbers.batch(2).unbatch(), {'b'}},
      {numbers.take(1), {'b'}},
      {numbers.skip(0).prefetch(2), {'b'}},
      {numbers.cache().cache(folder.in("cache")), {'b'}},
      {numbers.concatenate(numbers), {'b', 'b'}},
      {files.interleave(read, {.cycle_length = 2}), {'b', 'b' + 1}},
      {zip(numbers, numbers).map([](const auto& both) { return std::get<1>(both); }), {'b'}},
      {numbers.enumerate().map([](const auto& numbered) { return numbered.second; }), {'b'}},
  };
  for (const auto& [dataset, expected] : cases) {
    const auto mine = dataset.node()->with_files_of({2, 1});
    ASSERT_TRUE(mine);
    EXPECT_EQ(pass_of(Dataset<Tensor>(mine)), expected);
  }
}

TEST(OtherSources, HaveNoFilesToDivide) {
  const Folder folder({"a", "b"});
  const auto number = [](const std::string&) { return Tensor::scalar(std::int64_t{0}); };
  const auto numbers = Dataset<std::string>::list_files(folder.in("*")).map(number);
  for (const auto& dataset : {range_dataset(4).batch(2), counted_dataset(4).shuffle(),
                              Dataset<Tensor>::range(3).repeat(), Dataset<Tensor>::from_tensors(range(2)),
                              numbers.concatenate(range_dataset(2)), range_dataset(2).concatenate(numbers)}) {
    EXPECT_FALSE(dataset.node()->with_files_of({2, 0}));
  }
  EXPECT_FALSE(zip(numbers, range_dataset(2)).node()->with_files_of({2, 0}));
}

}  // namespace
}  // namespace cohort::testing
