// What must end in an error, for members that share memory: calls that differ, members that
// are late, leave or abort, and failures inside the engine itself.
#include "collective/host_communicators.h"
#include "collective/node/waiting.h"
#include "collective/packing/tensor_lists.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <latch>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/node_heap.h"
#include "members.h"
#include "stopping_page.h"
#include "thrown.h"

namespace cohort::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Tensor floats(std::int64_t elements) { return Tensor::zeros({elements}, DType::kFloat32); }

// ---- calls that differ

/// Two calls that differ in one field.
struct Difference {
  const char* field;
  std::function<void(Communicator&)> odd;
  std::function<void(Communicator&)> usual;
  const char* odd_text;
  const char* usual_text;
};

std::vector<Difference> differences() {
  const auto all_reduce = [](std::int64_t elements, DType dtype, ReduceOp op) {
    return [=](Communicator& communicator) { communicator.all_reduce(Tensor::zeros({elements}, dtype), op); };
  };
  const auto broadcast = [](int root, std::int64_t elements) {
    return [=](Communicator& communicator) { communicator.broadcast(floats(elements), root); };
  };
  const auto gather = [](std::size_t more_of_last) {
    return [=](Communicator& communicator) {
      // The same amounts for this member and in all, so that only the list tells the calls apart.
      std::vector<std::size_t> counts(static_cast<std::size_t>(communicator.size()), 4);
      counts.front() += more_of_last;
      counts.back() -= more_of_last;
      const auto own = static_cast<std::int64_t>(counts[static_cast<std::size_t>(communicator.rank())]);
      communicator.all_gather_uneven(floats(own), floats(4 * communicator.size()), counts);
    };
  };
  const auto packed = [](std::int64_t first, std::int64_t second) {
    return [=](Communicator& communicator) {
      const Tensor tensors[] = {floats(first), floats(second)};
      BatchReducer().all_reduce(communicator, tensors, ReduceOp::kSum);
    };
  };
  const auto barrier = [](Communicator& communicator) { communicator.barrier(); };
  constexpr auto kFloat = DType::kFloat32;
  constexpr auto kSum = ReduceOp::kSum;
  return {
      {"kind", barrier, all_reduce(5, kFloat, kSum), "barrier()", "all_reduce(float32[5], sum)"},
      {"kind, large", barrier, all_reduce(50'000, kFloat, kSum), "barrier()",
       "all_reduce(float32[50000], sum)"},
      {"dtype", all_reduce(5, DType::kInt32, kSum), all_reduce(5, kFloat, kSum), "int32[5]", "float32[5]"},
      {"dtype, large", all_reduce(50'000, DType::kInt32, kSum), all_reduce(50'000, kFloat, kSum), "int32[",
       "float32["},
      {"operator", all_reduce(5, kFloat, ReduceOp::kMax), all_reduce(5, kFloat, kSum), "max)", "sum)"},
      {"root", broadcast(1, 5), broadcast(0, 5), "root 1", "root 0"},
      {"root, large", broadcast(1, 50'000), broadcast(0, 50'000), "root 1", "root 0"},
      {"count", all_reduce(6, kFloat, kSum), all_reduce(5, kFloat, kSum), "float32[6]", "float32[5]"},
      {"count, small and large", all_reduce(6, kFloat, kSum), all_reduce(50'000, kFloat, kSum), "float32[6]",
       "float32[50000]"},
      // Numbers whose 16-bit mixtures are the same: a hash alone would take them for one.
      {"count, alike in 16 bits", all_reduce(172'633, kFloat, kSum), all_reduce(65'536, kFloat, kSum),
       "float32[172633]", "float32[65536]"},
      {"count, small and large, alike in 16 bits", all_reduce(106'034, kFloat, kSum),
       all_reduce(5, kFloat, kSum), "float32[106034]", "float32[5]"},
      {"counts of an uneven all-gather", gather(1), gather(2), "layout", "layout"},
      {"layout", packed(2, 3), packed(3, 2), "layout", "A layout is a digest of what a call is for"},
  };
}

class Mismatch : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, Mismatch, ::testing::Values(2, 3, 5));

TEST_P(Mismatch, OfAnyFieldNamesTheOddMemberWithItsCall) {
  for (const Difference& difference : differences()) {
    for (const int odd : {0, GetParam() - 1}) {
      SCOPED_TRACE(fmt::format("{}, odd member {}", difference.field, odd));
      const auto start = std::chrono::steady_clock::now();
      for_each_member(GetParam(), [&](Communicator& communicator) {
        const bool is_odd = communicator.rank() == odd;
        const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
          is_odd ? difference.odd(communicator) : difference.usual(communicator);
        });
        EXPECT_THAT(text, AllOf(HasSubstr(fmt::format("member {} ", odd)), HasSubstr(difference.odd_text),
                                HasSubstr(difference.usual_text)))
            << difference.field;
        EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { communicator.barrier(); }), text);
      });
      EXPECT_LT(std::chrono::steady_clock::now() - start, 1s);
    }
  }
}

TEST(MismatchOfTwo, NamesBothForThereIsNoMajority) {
  for_each_member(2, [](Communicator& communicator) {
    const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
      communicator.all_reduce(floats(5 + communicator.rank()), ReduceOp::kSum);
    });
    EXPECT_THAT(text, HasSubstr("member 0 (worker 0"));
    EXPECT_THAT(text, HasSubstr("member 1 (worker 0"));
    EXPECT_THAT(text, Not(HasSubstr("the other 1")));
  });
}

// Whoever comes first is waited for in the order of ranks, so the late ones are tried at both ends.
TEST(Mismatch, IsReportedThoughAMemberHasNotArrived) {
  for (const int late : {0, 2}) {
    std::latch reported(2);
    const auto start = std::chrono::steady_clock::now();
    for_each_member(
        3,
        [&](Communicator& communicator) {
          if (communicator.rank() == late) {
            reported.wait();
            EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
            static_cast<void>(message_of(ErrorCode::kInvalidArgument, [&] { communicator.barrier(); }));
            return;
          }
          const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
            communicator.all_reduce(floats(5 + communicator.rank()), ReduceOp::kSum);
          });
          EXPECT_THAT(
              text, AllOf(HasSubstr(fmt::format("member {} ", communicator.rank())), HasSubstr("member 1 ")));
          reported.count_down();
        },
        {.timeout_seconds = 20});
  }
}

TEST(Mismatch, OfAsynchronousCallsEndsAllThatFollow) {
  for_each_member(3, [](Communicator& communicator) {
    const std::int64_t elements = communicator.rank() == 1 ? 20 : 30;
    Work odd = communicator.all_reduce_async(floats(elements), ReduceOp::kSum);
    const std::string text = message_of(ErrorCode::kInvalidArgument, [&] {
      // Already the start fails where the others were quick.
      Work next = communicator.all_reduce_async(floats(100'000), ReduceOp::kSum);
      next.wait();
    });
    EXPECT_EQ(message_of(ErrorCode::kInvalidArgument, [&] { odd.wait(); }), text);
    EXPECT_THAT(text, HasSubstr("all_reduce #0"));
  });
}

// ---- members that abort, leave, are late

TEST(Abort, ByAnotherThreadEndsEveryPhase) {
  for (const std::int64_t elements : {1, 1000, 1'000'000}) {
    const auto communicators = make_thread_communicators(3, {.timeout_seconds = 20});
    std::vector<std::thread> members;
    for (const int rank : {0, 1}) {
      members.emplace_back([&, rank] {
        Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
        const std::string text = message_of(
            ErrorCode::kAborted, [&] { communicator.all_reduce(floats(elements), ReduceOp::kSum); });
        EXPECT_EQ(text, "the user has had enough");
        EXPECT_EQ(communicator.failure()->origin().member, 2);
      });
    }
    communicators[2]->abort(Aborted("the user has had enough"));
    for (std::thread& member : members) member.join();
  }
}

TEST(Timeout, DoesNotCountTheTimeInWhichTheProcessIsSuspended) {
  node::Waiting waiting(true);
  while (waiting.waited() <= 0s) static_cast<void>(waiting.is_time_to_check());
  const auto before = waiting.waited();
  std::this_thread::sleep_for(800ms);  // as if it were suspended
  static_cast<void>(waiting.is_time_to_check());
  EXPECT_LE(waiting.waited() - before, 501ms);
  EXPECT_GE(waiting.waited() - before, 499ms);
}

TEST(Timeout, OfZeroWaitsForEver) {
  for_each_member(2,
                  [&](Communicator& communicator) {
                    if (communicator.rank() == 0) {
                      communicator.barrier();
                      return;
                    }
                    // The shortest time-out that a wrong reading of 0 would be.
                    std::this_thread::sleep_for(50ms);
                    communicator.barrier();
                  },
                  {.timeout_seconds = 0});
}

// ---- works

TEST(Work, MayBeWaitedForByTwoThreads) {
  for_each_member(2, [](Communicator& communicator) {
    for (int i = 0; i < 200; ++i) {
      const Tensor tensor = Tensor::full({3000}, DType::kFloat32, 1.0f);
      Work work = communicator.all_reduce_async(tensor, ReduceOp::kSum);
      std::thread other([work]() mutable { work.wait(); });
      work.wait();
      EXPECT_EQ(tensor.span<float>()[2999], 2.0f);
      other.join();
    }
  });
}

TEST(Work, OutlivesItsCommunicatorAndFailsLikeIt) {
  std::vector<Work> works;
  {
    const auto communicators = make_thread_communicators(2, {.timeout_seconds = 20});
    works.push_back(communicators[0]->all_reduce_async(floats(100), ReduceOp::kSum));
  }
  EXPECT_THAT(message_of(ErrorCode::kAborted, [&] { works[0].wait(); }), HasSubstr("member 1 "));
}

TEST(Messages, MoreThanAMemberHoldsAtOnceMayBeReceivedInAnyOrder) {
  constexpr int kMessages = 100;
  for (const std::int64_t elements : {10, 100'000}) {
    for_each_member(2,
                    [&](Communicator& communicator) {
                      if (communicator.rank() == 0) {
                        std::vector<Work> works;
                        works.reserve(kMessages);
                        for (int tag = 0; tag < kMessages; ++tag) {
                          works.push_back(communicator.send_async(
                              Tensor::full({elements}, DType::kFloat32, static_cast<float>(tag)), 1, tag));
                        }
                        for (Work& work : works) work.wait();
                        return;
                      }
                      for (int tag = kMessages - 1; tag >= 0; --tag) {
                        const Tensor tensor = floats(elements);
                        communicator.receive(tensor, 0, tag);
                        ASSERT_EQ(tensor.span<float>()[0], static_cast<float>(tag));
                      }
                    },
                    {.timeout_seconds = 5});
  }
}

// ---- members that are stopped in the middle while others give up

bool all_are(const Tensor& tensor, float value) {
  return std::ranges::all_of(tensor.span<float>(), [&](float element) { return element == value; });
}

TEST(StoppedMember, GetsNoSumOfWhatOthersWroteAfterwards) {
  const auto communicators = make_thread_communicators(2, {.timeout_seconds = 60});
  // The second half is the share of member 1, which stops there.
  StoppingPage memory({.pages = 16, .page = 12});
  std::ranges::fill(memory.floats(), 1.0f);
  const auto elements = static_cast<std::int64_t>(memory.floats().size());
  const Tensor first = Tensor::wrap(memory.floats(), {elements});
  const Tensor second = Tensor::full({elements}, DType::kFloat32, 2);
  for (const bool stops : {false, true}) {
    if (stops) memory.arm();
    std::thread late([&] {
      if (stops)
        EXPECT_THROW(communicators[1]->all_reduce(second, ReduceOp::kSum), Aborted);
      else
        communicators[1]->all_reduce(second, ReduceOp::kSum);
    });
    Work work = communicators[0]->all_reduce_async(first, ReduceOp::kSum);
    if (stops) {
      memory.wait_until_reached();
      communicators[0]->abort(Aborted("has no more time"));
      EXPECT_THROW(work.wait(), Aborted);
      std::ranges::fill(memory.floats_behind(), -1000.0f);
      memory.let_go_on();
    } else {
      work.wait();
      EXPECT_EQ(communicators[0]->last_algorithm(), "direct");
    }
    late.join();
  }
}

TEST(StoppedMember, MakesNoSenderWaitBeyondItsDeadline) {
  const auto communicators = make_thread_communicators(2, {.timeout_seconds = 60});
  StoppingPage memory({.pages = 64, .page = 8});
  std::ranges::fill(memory.floats(), 1.0f);
  const auto elements = static_cast<std::int64_t>(memory.floats().size());
  const Tensor sent = Tensor::wrap(memory.floats(), {elements});
  const Tensor received = floats(elements);
  memory.arm();
  std::thread receiver([&] {
    communicators[1]->receive(received, 0);
    communicators[1]->barrier();
  });
  // Until the receiver copies, each of these is taken back.
  do {
    EXPECT_THAT(message_of(ErrorCode::kDeadlineExceeded, [&] { communicators[0]->send(sent, 1, 0, 0.2); }),
                names_missing(1));
  } while (!memory.is_reached());
  std::ranges::fill(memory.floats_behind(), -1000.0f);
  memory.let_go_on();
  communicators[0]->send(Tensor::full({elements}, DType::kFloat32, 2), 1);
  communicators[0]->barrier();
  receiver.join();
  EXPECT_TRUE(all_are(received, 2));
}

TEST(StoppedMember, ReceivesNothingThatItsSenderWroteAfterwards) {
  const auto communicators = make_thread_communicators(2, {.timeout_seconds = 60});
  StoppingPage memory({.pages = 64, .page = 8});
  std::ranges::fill(memory.floats(), 1.0f);
  const auto elements = static_cast<std::int64_t>(memory.floats().size());
  memory.arm();
  std::thread receiver([&] { EXPECT_THROW(communicators[1]->receive(floats(elements), 0), Aborted); });
  Work work = communicators[0]->send_async(Tensor::wrap(memory.floats(), {elements}), 1);
  memory.wait_until_reached();
  communicators[0]->abort(Aborted("has no more time"));
  EXPECT_THROW(work.wait(), Aborted);
  std::ranges::fill(memory.floats_behind(), -1000.0f);
  memory.let_go_on();
  receiver.join();
}

// ---- inside the engine

TEST(Engine, AnExceptionOfAnotherKindEndsTheCallsOnly) {
  NodeGroupOptions options;
  options.members = 2;
  options.fault = []() -> const Error* { throw std::runtime_error("the watch is out of order"); };
  const auto communicators = make_node_communicators(options);
  Work work = communicators[0]->barrier_async();
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { work.wait(); }), HasSubstr("the watch is out of order"));
  EXPECT_THAT(message_of(ErrorCode::kInternal, [&] { communicators[1]->barrier(); }),
              HasSubstr("out of order"));
}

TEST(Engine, GivesBackTheMemoryOfFailedCalls) {
  const NodeHeap* heap = NodeHeap::of_this_process();
  if (heap == nullptr) GTEST_SKIP();
  const std::size_t most = heap->statistics().used_bytes + (std::size_t{2} << 20);
  for (int i = 0; i < 20; ++i) {
    for_each_member(2, [&](Communicator& communicator) {
      const std::int64_t elements = 1'000'000 + communicator.rank();
      if (i % 2 == 0) {
        EXPECT_THROW(communicator.all_reduce(floats(elements), ReduceOp::kSum), InvalidArgument);
      } else {
        EXPECT_THROW(communicator.all_reduce_async(floats(elements), ReduceOp::kSum).wait(), InvalidArgument);
      }
    });
  }
  // The progress thread may be the last to let go. New communicators look for what can be given back.
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (heap->statistics().used_bytes > most && std::chrono::steady_clock::now() < end) {
    static_cast<void>(make_thread_communicators(1));
    std::this_thread::yield();
  }
  EXPECT_LE(heap->statistics().used_bytes, most);
}

TEST(Engine, KeepsWrappedMemoryOfFailedCallsWhileOthersMayWriteToIt) {
  auto communicators = make_thread_communicators(2, {.timeout_seconds = 0.1});
  std::vector<std::weak_ptr<void>> owners;
  const auto wrapped = [&] {
    const auto values = std::make_shared<std::vector<float>>(300'000);
    owners.push_back(values);
    return Tensor::wrap(std::span<float>(*values), {300'000}, values);
  };
  EXPECT_THROW(communicators[0]->all_reduce(wrapped(), wrapped(), ReduceOp::kSum), DeadlineExceeded);
  // The other member would find these addresses, if it came now.
  for (const std::weak_ptr<void>& owner : owners) EXPECT_FALSE(owner.expired());
  communicators.clear();
  for (const std::weak_ptr<void>& owner : owners) EXPECT_TRUE(owner.expired());
}

/// How a child process ends that runs `function` after a fork; -1 if it does not end in time.
int status_of_child(const std::function<void()>& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    function();
    std::exit(0);  // with all destructors of static objects
  }
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (int status = 0; std::chrono::steady_clock::now() < end; std::this_thread::yield()) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
  }
  ::kill(child, SIGKILL);
  static_cast<void>(::waitpid(child, nullptr, 0));
  return -1;
}

TEST(Engine, AForkedChildMayDropItsCopiesAndEnd) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a child has not the threads that hold some of its memory, which looks like a leak";
#endif
  auto communicators = make_thread_communicators(2, {.timeout_seconds = 20});
  const Tensor tensor = floats(10);
  std::optional<Work> work = communicators[0]->all_reduce_async(tensor, ReduceOp::kSum);
  const auto drop_all = [&] {
    communicators.clear();
    work.reset();
  };
  EXPECT_EQ(status_of_child(drop_all), 0);
  communicators[1]->all_reduce(tensor, ReduceOp::kSum);  // and here all is as before
  work->wait();
}

TEST(Engine, AThousandCommunicatorsAtOnceAndInTurns) {
  constexpr int kCommunicators = 1000;
  std::vector<std::vector<std::unique_ptr<Communicator>>> all;
  all.reserve(kCommunicators);
  for (int i = 0; i < kCommunicators; ++i) all.push_back(make_thread_communicators(1));
  for (const auto& communicators : all) communicators[0]->barrier();
  all.clear();
  const NodeHeap* heap = NodeHeap::of_this_process();
  const std::size_t growths = heap == nullptr ? 0 : heap->statistics().growths;
  for (int i = 0; i < kCommunicators; ++i) {
    for_each_member(2, [](Communicator& communicator) { communicator.barrier(); });
  }
  EXPECT_EQ(heap == nullptr ? 0 : heap->statistics().growths, growths);
}

}  // namespace
}  // namespace cohort::testing
