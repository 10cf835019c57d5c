#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <gmock/gmock.h>

#include "base/system_calls.h"
#include "batches.h"

namespace cohort::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// A folder for caches, as long as this object lives.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& which = "")
      : path_(::testing::TempDir() + "cohort_cache_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + which) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  ~CacheFolder() { std::filesystem::remove_all(path_); }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  [[nodiscard]] std::string file() const { return path_ + "/cache"; }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
  }
  [[nodiscard]] bool may_have_files_without_names() const {
    const int file = ::open(path_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0) ::close(file);
    return file >= 0;
  }

 private:
  std::string path_;
};

/// Counts how often elements are read.
auto counting(std::atomic<int>& reads) {
  return [&reads](const Tensor& element) {
    ++reads;
    return element;
  };
}

TEST(Cache, ReadsItsSourceOnce) {
  const CacheFolder folder;
  for (const bool in_file : {false, true}) {
    std::atomic<int> reads = 0;
    const auto source = range_dataset(4).map(counting(reads));
    const auto cached = in_file ? source.cache(folder.file()) : source.cache();
    EXPECT_EQ(reads, 0);
    for (int pass = 0; pass < 3; ++pass) EXPECT_THAT(pass_of(cached), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(steps_of(cached.skip(1).batch(2)), (Steps{{1, 2}, {3}}));
    EXPECT_EQ(reads, 4);
  }
  EXPECT_EQ(folder.files(), 1) << "nothing is left beside the cache";
}

TEST(Cache, MayBeEmpty) {
  const CacheFolder folder;
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(pass_of(range_dataset(0).cache()), IsEmpty());
    EXPECT_THAT(pass_of(range_dataset(0).cache(folder.file())), IsEmpty());
  }
}

TEST(Cache, KeepsOnlyACompletePass) {
  const CacheFolder folder;
  for (const bool in_file : {false, true}) {
    std::atomic<int> reads = 0;
    const auto source = range_dataset(4).map(counting(reads));
    const auto cached = in_file ? source.cache(folder.file()) : source.cache();
    EXPECT_THAT(pass_of(cached.take(2)), ElementsAre(0, 1));
    EXPECT_EQ(folder.files(), 0);
    EXPECT_THAT(pass_of(cached), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(reads, 6);
  }
}

TEST(Cache, KeepsNoPassWithAnError) {
  const CacheFolder folder;
  for (const bool in_file : {false, true}) {
    const auto source = range_dataset(4).map(failing_at(2));
    const auto cached = in_file ? source.cache(folder.file()) : source.cache();
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(outcomes_of(cached), "0 1 ! 3 .");
    EXPECT_EQ(folder.files(), 0);
  }
}

TEST(Cache, HasTheFirstOrderInEveryPass) {
  const CacheFolder folder;
  const auto shuffled = range_dataset(30).shuffle({.seed = 4});
  const Rows first = pass_of(range_dataset(30).shuffle({.seed = 4}));
  for (const bool in_file : {false, true}) {
    const auto cached = in_file ? shuffled.cache(folder.file()) : shuffled.cache();
    auto late = cached.begin_at({.pass = 5, .elements = 29});
    EXPECT_EQ((*late).item<std::int64_t>(), first.back()) << "whichever pass fills the cache";
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(pass_of(cached), first);
  }
}

TEST(Cache, IsSharedByPassesThatRunTogether) {
  const CacheFolder folder;
  for (const auto& cached : {range_dataset(50).cache(), range_dataset(50).cache(folder.file())}) {
    std::vector<std::jthread> threads;
    std::atomic<int> right = 0;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] { right += pass_of(cached) == elements_of(range(50)) ? 1 : 0; });
    }
    threads.clear();
    EXPECT_EQ(right, 4);
  }
  EXPECT_EQ(folder.files(), 1);
}

struct Record {
  std::string name;
  std::vector<Tensor> tensors;
  std::optional<Tensor> mask;
  std::map<std::string, float> weights;
  std::int32_t id = 0;
};
COHORT_FIELDS(Record, name, tensors, mask, weights, id)

TEST(CacheFile, HoldsStructures) {
  const CacheFolder folder;
  const auto records = Dataset<Tensor>::range(3).map([](const Tensor& element) {
    const auto number = element.item<std::int32_t>();
    Record record{.name = std::string(static_cast<std::size_t>(number), 'x'),
                  .tensors = {},
                  .mask = {},
                  .weights = {{"a", 0.5f}},
                  .id = number};
    for (std::int32_t count = 0; count < number; ++count)
      record.tensors.push_back(Tensor::full({2, number}, DType::kBFloat16, count));
    if (number == 1) record.mask = Tensor::zeros({0, 3}, DType::kBool);
    return record;
  });
  for (int pass = 0; pass < 2; ++pass) {
    std::int32_t number = 0;
    for (const Record& record : records.cache(folder.file())) {
      EXPECT_EQ(record.name.size(), static_cast<std::size_t>(number));
      ASSERT_EQ(record.tensors.size(), static_cast<std::size_t>(number));
      for (std::int32_t count = 0; count < number; ++count) {
        EXPECT_TRUE(bitwise_equal(record.tensors[static_cast<std::size_t>(count)],
                                  Tensor::full({2, number}, DType::kBFloat16, count)));
      }
      ASSERT_EQ(record.mask.has_value(), number == 1);
      if (number == 1) {
        EXPECT_EQ(describe(*record.mask), "bool[0, 3]");
      }
      EXPECT_THAT(record.weights, ElementsAre(std::pair<const std::string, float>("a", 0.5f)));
      EXPECT_EQ(record.id, number);
      ++number;
    }
    EXPECT_EQ(number, 3);
  }
}

std::string content_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(CacheFile, WhoseAnyByteIsWrongIsRefused) {
  const CacheFolder folder;
  const auto cached = range_dataset(3).cache(folder.file());
  static_cast<void>(pass_of(cached));
  const std::string whole = content_of(folder.file());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(folder.file(), damaged);
    EXPECT_THAT([&] { return pass_of(cached); }, ThrowsMessage<DataLoss>(HasSubstr(folder.file()))) << at;
  }
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_file(folder.file(), whole.substr(0, length));
    EXPECT_THAT([&] { return pass_of(cached); },
                ThrowsMessage<DataLoss>(AllOf(HasSubstr(folder.file()), HasSubstr("remove it"))))
        << length;
  }
}

TEST(CacheFile, OfOtherElementsIsRefused) {
  const CacheFolder folder;
  static_cast<void>(pass_of(range_dataset(3).cache(folder.file())));
  const auto words = Dataset<std::string>::from_tensors("word").cache(folder.file());
  EXPECT_THAT([&] { static_cast<void>(words.begin()); },
              ThrowsMessage<DataLoss>(AllOf(HasSubstr(folder.file()), HasSubstr("another type"))));
}

TEST(CacheFile, IsAnotherForEachWorkersPart) {
  const CacheFolder folder;
  const auto cached = range_dataset(5).shard(Shard::hint()).cache(folder.file());
  const auto part = [&](int index) {
    return pass_of(Dataset<Tensor>(cached.node()->with_hints_as({.count = 2, .index = index})));
  };
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(part(0), ElementsAre(0, 2, 4));
    EXPECT_THAT(part(1), ElementsAre(1, 3));
  }
  EXPECT_EQ(folder.files(), 2);
  EXPECT_FALSE(range_dataset(5).cache(folder.file()).node()->with_hints_as({.count = 2, .index = 0}));
}

TEST(CacheFile, LeavesNothingOfAProcessThatWasKilled) {
  for (const bool is_complete : {false, true}) {
    const CacheFolder folder;
    const auto cached = range_dataset(3).cache(folder.file());
    const pid_t killed = ::fork();
    if (killed == 0) {
      auto elements = cached.begin();
      ++elements;
      ::raise(SIGKILL);
    }
    ASSERT_EQ(::waitpid(killed, nullptr, 0), killed);
    EXPECT_EQ(folder.files(), folder.may_have_files_without_names() ? 0 : 1) << "what it has written so far";
    // What other file systems keep.
    std::ofstream(folder.file() + ".unfinished-" + host_name() + "-0000abcd") << "so far";
    // The next start, where the cache is written or has been completed by another worker meanwhile.
    if (is_complete) {
      const CacheFolder other("other");
      static_cast<void>(pass_of(range_dataset(3).cache(other.file())));
      std::filesystem::copy_file(other.file(), folder.file());
    }
    EXPECT_THAT(pass_of(range_dataset(3).cache(folder.file())), ElementsAre(0, 1, 2));
    EXPECT_EQ(folder.files(), 1) << "the cache alone";
  }
}

TEST(CacheFile, IsNoPipe) {
  const CacheFolder folder;
  ASSERT_EQ(::mkfifo(folder.file().c_str(), 0600), 0);
  EXPECT_THAT([&] { return pass_of(range_dataset(3).cache(folder.file())); },
              ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(folder.file()), HasSubstr("a pipe"))));
}

TEST(CacheFile, NeedsAFolder) {
  const CacheFolder folder;
  EXPECT_THAT([&] { return pass_of(range_dataset(3).cache(folder.file() + "/none/cache")); },
              ThrowsMessage<Unavailable>(HasSubstr("none/cache")));
}

}  // namespace
}  // namespace cohort::testing
