// What is left of a store whose process ends at any moment, and of a file that is none.

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/sockets.h"
#include "server/store/store.h"
#include "server/store/store_layout.h"
#include "server/store/store_mapping.h"
#include "store_values.h"
#include "thrown.h"

namespace cohort::server {
namespace {

constexpr int kMayNotBeTraced = 2;

/// The blocks of a small store.
constexpr std::uint64_t kMostBlocks = 8 * kPage;

struct Part {
  std::uint64_t begin;
  std::uint64_t bytes;
};

/// What a small store uses: the table and the list of changes are mostly holes.
std::vector<Part> used_parts(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw std::runtime_error("no file");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes < kBlocksBegin) return {{0, std::min(bytes, std::uint64_t{kPage})}};
  return {{0, kPage},
          {kChangesBegin, kPage},
          {kTableBegin, kPage},
          {kBlocksBegin, std::min(bytes - kBlocksBegin, kMostBlocks)}};
}

using Contents = std::vector<std::vector<std::byte>>;

Contents contents_of(int descriptor) {
  Contents contents;
  for (const Part& part : used_parts(descriptor)) {
    contents.emplace_back(part.bytes);
    if (::pread(descriptor, contents.back().data(), part.bytes, static_cast<off_t>(part.begin)) !=
        static_cast<ssize_t>(part.bytes))
      throw std::runtime_error("cannot read the file");
  }
  return contents;
}

[[noreturn]] void run_child(const std::function<void()>& prepare, const std::function<void()>& operation) {
  try {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(kMayNotBeTraced);
    prepare();
    ::raise(SIGSTOP);
    operation();
    ::raise(SIGSTOP);
    ::_exit(0);
  } catch (...) {
    ::_exit(1);
  }
}

/// Waits until the child stops or ends. The signal that stopped it; 0 when it has ended.
int wait_for_stop(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("no child");
  if (WIFSTOPPED(status)) return WSTOPSIG(status);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kMayNotBeTraced)
      << "the child failed with status " << status;
  return 0;
}

/// A memory file with the contents of another.
watch::Fd copy_of_store_file(int descriptor) {
  watch::Fd copy = make_store_file();
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || ::ftruncate(copy.get(), status.st_size) != 0)
    throw std::runtime_error("cannot make a copy");
  const std::vector<Part> parts = used_parts(descriptor);
  const Contents contents = contents_of(descriptor);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (::pwrite(copy.get(), contents[i].data(), contents[i].size(), static_cast<off_t>(parts[i].begin)) !=
        static_cast<ssize_t>(contents[i].size()))
      throw std::runtime_error("cannot write the copy");
  }
  return copy;
}

/// The memory of a store as a process leaves it that ends between any two of its instructions. A child calls
/// `prepare` and then `operation`, which is run one instruction at a time. `on_state` is called with a copy
/// of the file `descriptor` whenever the memory has become another, until something has failed. Returns how
/// often that was; 0 where processes may not be traced, and under a sanitizer.
int for_each_state(int descriptor, const std::function<void()>& prepare,
                   const std::function<void()>& operation, const std::function<void(int copy)>& on_state) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;  // it would be minutes: most of the instructions are the sanitizer's
#endif
  const pid_t child = ::fork();
  if (child == 0) run_child(prepare, operation);
  if (wait_for_stop(child) != SIGSTOP) return 0;
  int states = 0;
  Contents before;
  for (int signal = SIGTRAP; signal == SIGTRAP; signal = wait_for_stop(child)) {
    if (Contents now = contents_of(descriptor); now != before) {
      before = std::move(now);
      on_state(copy_of_store_file(descriptor).get());
      ++states;
    }
    if (::testing::Test::HasFailure()) break;
    if (::ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0) break;
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return states;
}

using ::cohort::testing::message_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A store with variables whose elements are all 1, and a commit of an execution.
class StoreRecovery : public ::testing::Test {
 protected:
  void SetUp() override {
    first_ = store_.create("first", {3}, DType::kFloat32, 1);
    second_ = store_.create("second", {2, 2}, DType::kFloat32);
    commit_value(store_, first_, 1);
    commit_value(store_, second_, 1, Execution{7, 1}, "one");
  }

  /// Runs `operation` with a store over the same memory, in a process that ends after each instruction in
  /// turn; `check` gets what another process then finds.
  void at_each_end(const std::function<void(Store&)>& operation, const std::function<void(Store&)>& check) {
    std::optional<Store> store;
    const int states = for_each_state(
        store_.descriptor(),
        [&] {
          store.emplace(store_.descriptor());
          // Asking the system what memory is left takes more instructions than all operations; this one asks.
          store->create("prepared", {1}, DType::kInt8);
        },
        [&] { operation(*store); },
        [&](int copy) {
          Store found(copy);
          check(found);
          // It goes on.
          commit_value(found, first_, 5, Execution{9, 1}, "five");
          EXPECT_THAT(floats(found.value(first_)), Each(5));
          EXPECT_THAT(floats(found.slot(first_, 0)), Each(5));
          EXPECT_EQ(found.find_commit({9, 1})->result, bytes_of("five"));
        });
    if (states == 0 && !HasFailure()) GTEST_SKIP() << "processes are not traced here";
    EXPECT_GT(states, 2);
  }

  Store store_;
  VariableIndex first_ = 0;
  VariableIndex second_ = 0;
};

void change_both(Store& store) {
  store.begin();
  const Store::Change first = store.overwrite(0);
  first.fresh_value.fill(2);
  first.fresh_slots[0].fill(2);
  const std::vector<std::int64_t> rows{1};
  store.change_rows(1, rows).fresh_value.row(1).fill(2);
  store.commit(Execution{7, 2}, bytes_of("two"));
}

/// Whether the second commit was made; fails unless it was as a whole or not at all.
bool is_committed(const Store& store) {
  const bool committed = store.version(0) == 2;
  const float value = committed ? 2 : 1;
  EXPECT_THAT(floats(store.value(0)), Each(value));
  EXPECT_THAT(floats(store.slot(0, 0)), Each(value));
  EXPECT_THAT(floats(store.value(1)), ElementsAre(1, 1, value, value));
  EXPECT_EQ(store.version(1), store.version(0));
  EXPECT_EQ(store.find_commit({7, 1})->result, bytes_of("one"));
  EXPECT_EQ(store.find_commit({7, 2}).has_value(), committed);
  if (committed) {
    EXPECT_EQ(store.find_commit({7, 2})->result, bytes_of("two"));
  }
  return committed;
}

TEST_F(StoreRecovery, LeavesAllOfACommitOrNothing) {
  int without = 0;
  int with = 0;
  at_each_end(change_both, [&](const Store& found) {
    (is_committed(found) ? with : without) += 1;
    EXPECT_TRUE(with == 0 || is_committed(found)) << "what was committed stays";
  });
  if (IsSkipped()) return;
  EXPECT_GT(without, 0);
  EXPECT_GT(with, 1) << "also a commit that was recorded only";
}

// The process that goes on may end, too.
TEST_F(StoreRecovery, CompletesARecordedCommitAtAnyTime) {
  std::optional<watch::Fd> recorded;
  at_each_end(change_both, [&](const Store& found) {
    if (!recorded && is_committed(found)) recorded = copy_of_store_file(found.descriptor());
  });
  if (IsSkipped()) return;
  // As it was before `found` completed it: recorded, with the copies in their old places.
  const StoreMapping mapping(recorded->get(), StoreMapping::Access::kWrite);
  for (const VariableIndex variable : {first_, second_}) mapping.entry(variable).sequence = 3;
  mapping.header().commit_recorded = 1;
  const int states = for_each_state(
      recorded->get(), [] {}, [&] { const Store store(recorded->get()); },
      [](int copy) { EXPECT_TRUE(is_committed(Store(copy))); });
  EXPECT_GT(states, 2);
}

TEST_F(StoreRecovery, MayEndWhileACommitWithANewVariableIsAbandoned) {
  at_each_end(
      [](Store& store) {
        store.begin();
        store.overwrite(store.create("third", {2}, DType::kInt64, 1)).fresh_value.fill(3);
        store.abandon();
        store.create("fourth", {2}, DType::kInt64);
      },
      [&](const Store& found) {
        for (VariableIndex variable = second_ + 2; variable < found.size(); ++variable)
          EXPECT_TRUE(bitwise_equal(found.value(variable), Tensor::zeros({2}, DType::kInt64)));
      });
}

TEST_F(StoreRecovery, LeavesAllOfAVariableOrNothing) {
  at_each_end([](Store& store) { store.create("third", {2}, DType::kInt64, 1); },
              [](Store& found) {
                if (const auto third = found.find("third")) {
                  EXPECT_THAT(found.value(*third).span<std::int64_t>(), Each(0));
                  EXPECT_EQ(found.slots(*third), 1u);
                } else {
                  EXPECT_EQ(found.size(), 3u);
                  found.create("third", {2}, DType::kInt64, 1);
                }
              });
}

TEST_F(StoreRecovery, LeavesAllOfNewSlotsOrNothing) {
  at_each_end([](Store& store) { store.require_slots(1, 2); },
              [](Store& found) {
                EXPECT_TRUE(found.slots(1) == 0 || found.slots(1) == 2);
                found.require_slots(1, 2);
                EXPECT_THAT(floats(found.slot(1, 1)), Each(0));
              });
}

TEST_F(StoreRecovery, RemembersAndForgetsAtAnyTime) {
  at_each_end(
      [](Store& store) {
        store.fence(8);
        store.forget(7, 1);
        store.begin();
        store.commit(Execution{7, 2}, bytes_of("another"));
      },
      [](const Store& found) {
        const auto first = found.find_commit({7, 1});
        EXPECT_TRUE(first || found.is_fenced(8)) << "in their order";
        if (first) {
          EXPECT_EQ(first->result, bytes_of("one"));
        }
        if (const auto second = found.find_commit({7, 2})) {
          EXPECT_EQ(second->result, bytes_of("another"));
          EXPECT_FALSE(first);
        }
      });
}

TEST(StoreProcess, GoesOnWhereAKilledOneHasStopped) {
  constexpr std::int64_t kElements = 500;
  const watch::Fd file = make_store_file();
  {
    Store store(file.get());
    store.create("first", {kElements}, DType::kFloat64);
    store.create("second", {kElements}, DType::kFloat64, 1);
  }
  const StoreReader reader(file.get());
  std::mt19937 random(1);
  std::uint64_t committed = 0;
  for (int round = 0; round < 30; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      Store store(file.get());
      for (std::uint64_t number = committed + 1;; ++number) {
        store.begin();
        store.overwrite(0).fresh_value.fill(static_cast<double>(number));
        const Store::Change second = store.overwrite(1);
        second.fresh_value.fill(static_cast<double>(number));
        second.fresh_slots[0].fill(static_cast<double>(number));
        store.commit(Execution{1, number}, bytes_of(std::to_string(number)));
        store.forget(1, number - 1);
      }
    }
    ASSERT_GT(child, 0);
    // Somewhere in the midst of the commits after these.
    const std::uint64_t target = committed + 1 + random() % 300;
    while (reader.version(0) < target) {
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "the child ended with status " << status;
    }
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    const Store store(file.get());
    committed = store.version(0);
    EXPECT_GE(committed, target);
    EXPECT_EQ(store.version(1), committed);
    for (const Tensor& tensor : {store.value(0), store.value(1), store.slot(1, 0)})
      EXPECT_THAT(tensor.span<double>(), Each(static_cast<double>(committed)));
    ASSERT_TRUE(store.find_commit({1, committed}));
    EXPECT_EQ(store.find_commit({1, committed})->result, bytes_of(std::to_string(committed)));
    EXPECT_LE(store.commits_of(1).size(), 2u);
    std::vector<double> read(kElements);
    EXPECT_EQ(reader.read(0, std::as_writable_bytes(std::span(read))), committed);
    EXPECT_THAT(read, Each(static_cast<double>(committed)));
  }
}

/// The refusals of a file, by a store and a reader.
std::string refusal_of(int file) {
  std::string text = message_of(ErrorCode::kDataLoss, [&] { const Store store(file); });
  EXPECT_EQ(message_of(ErrorCode::kDataLoss, [&] { const StoreReader reader(file); }), text);
  return text;
}

TEST(StoreFile, IsRefusedWhenItIsAnother) {
  const watch::Fd text = make_store_file();
  const std::string contents(100, 'x');
  ASSERT_EQ(::write(text.get(), contents.data(), contents.size()), 100);
  EXPECT_THAT(refusal_of(text.get()), HasSubstr("100 bytes is not one of a server's variables"));
  struct stat status {};
  ASSERT_EQ(::fstat(text.get(), &status), 0);
  EXPECT_EQ(status.st_size, 100) << "it was not touched";

  const watch::Fd empty = make_store_file();
  EXPECT_THAT(message_of(ErrorCode::kDataLoss, [&] { const StoreReader reader(empty.get()); }),
              HasSubstr("0 bytes is not one"));
  EXPECT_THAT(message_of(ErrorCode::kUnavailable, [] { const Store store(-1); }), HasSubstr("descriptor -1"));
}

class DamagedStore : public StoreRecovery {
 protected:
  /// The refusal of a copy of the file, after `damage`.
  std::string refusal_after(const std::function<void(const StoreMapping&)>& damage) {
    const watch::Fd copy = copy_of_store_file(store_.descriptor());
    damage(StoreMapping(copy.get(), StoreMapping::Access::kWrite));
    return message_of(ErrorCode::kDataLoss, [&] { const Store store(copy.get()); });
  }
};

TEST_F(DamagedStore, IsRefusedWithTheReason) {
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.header().version = 9; }),
              HasSubstr("version 9"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.header().byte_order = 0x04030201; }),
              HasSubstr("byte order"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.shrink(kBlocksBegin - 1); }),
              HasSubstr("is damaged"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.shrink(kBlocksBegin); }),
              HasSubstr("outside of the file"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.header().variables = kMostVariables + 1; }),
              HasSubstr("65537 variables"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.entry(1).value = file.entry(0).value; }),
              HasSubstr("two blocks overlap"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.entry(1).dtype = 99; }),
              HasSubstr("no dtype"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.entry(1).extents[0] = -1; }),
              HasSubstr("no shape"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.entry(1).extents[0] = 3; }),
              HasSubstr("another size"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) { file.header().commit_recorded = 2; }),
              HasSubstr("its last commit is no commit"));
  EXPECT_THAT(refusal_after([](const StoreMapping& file) {
                const std::uint64_t block = file.header().commit_records;
                file.at<CommitBlock>(block).next = block;
              }),
              HasSubstr("circle"));
}

}  // namespace
}  // namespace cohort::server
