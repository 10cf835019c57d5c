// A system that has no thread left: asynchronous calls then make progress in threads that wait.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/collective/thread_communicator.h>

namespace {

std::atomic<bool> no_thread_left{false};

}  // namespace

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the C library's are reserved
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  if (no_thread_left) return EAGAIN;
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, function, argument);
}

namespace cohort {
namespace {

TEST(NoProgressThread, CallsMoveOnInThoseWhoWait) {
  const auto communicators = make_thread_communicators(2, {.timeout_seconds = 30});
  std::latch both_run(2);
  std::latch none_left(1);
  const auto take_part = [&](Communicator& communicator) {
    both_run.count_down();
    none_left.wait();
    for (int i = 0; i < 20; ++i) {
      const Tensor tensor = Tensor::full({70'000}, DType::kFloat32, communicator.rank() + 1);
      Work first = communicator.all_reduce_async(tensor, ReduceOp::kSum);
      Work second = communicator.barrier_async();
      second.wait();
      first.wait();
      EXPECT_EQ(tensor.span<float>().back(), 3);
    }
  };
  std::thread first([&] { take_part(*communicators[0]); });
  std::thread second([&] { take_part(*communicators[1]); });
  both_run.wait();
  no_thread_left = true;
  ::testing::internal::CaptureStderr();
  none_left.count_down();
  first.join();
  second.join();
  const std::string said = ::testing::internal::GetCapturedStderr();
  no_thread_left = false;
  EXPECT_THAT(said, ::testing::HasSubstr("no progress thread"));
  EXPECT_EQ(said.find("no progress thread"), said.rfind("no progress thread")) << "said once";
}

TEST(NoProgressThread, KeepsMemoryOfCallsThatAnErrorHasEndedWhileOthersMayWriteToIt) {
  auto communicators = make_thread_communicators(2, {.timeout_seconds = 30});
  std::weak_ptr<void> owner;
  no_thread_left = true;
  const auto begin_and_fail = [&](std::unique_ptr<Communicator> communicator) {
    const auto wrapped = std::make_shared<std::vector<float>>(300'000);
    owner = wrapped;
    const Tensor tensor = Tensor::wrap(std::span<float>(*wrapped), {300'000}, wrapped);
    static_cast<void>(communicator->all_reduce_async(tensor, ReduceOp::kSum).done());
    throw Aborted("has no more time");
  };
  EXPECT_THROW(begin_and_fail(std::move(communicators[0])), Aborted);
  no_thread_left = false;
  // The other member would find these addresses, if it came now.
  EXPECT_FALSE(owner.expired());
  communicators.clear();
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace cohort
