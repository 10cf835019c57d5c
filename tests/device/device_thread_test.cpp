#include "device/device_thread.h"

#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>

#include <cohort/base/error.h>

#include "device/machine.h"

namespace cohort {
namespace {

using ::testing::ElementsAre;

TEST(DeviceThread, RunsTasksInOrderOnOneThreadOfItsOwn) {
  DeviceThread thread({});
  std::vector<int> order;
  std::vector<std::thread::id> ids;
  for (int task = 0; task < 100; ++task) {
    thread.submit([&order, &ids, task] {
      order.push_back(task);
      ids.push_back(std::this_thread::get_id());
    });
    thread.wait();
    ASSERT_EQ(order.back(), task) << "wait() returns after the task";
  }
  EXPECT_EQ(order.size(), 100u);
  EXPECT_NE(ids.front(), std::this_thread::get_id());
  EXPECT_EQ(ids, std::vector<std::thread::id>(100, ids.front()));
}

TEST(DeviceThread, RunsWhileItsOwnerDoesSomethingElse) {
  std::promise<int> question;
  std::promise<int> answer;
  DeviceThread thread({});
  thread.submit([&] { answer.set_value(question.get_future().get() + 1); });
  question.set_value(41);
  EXPECT_EQ(answer.get_future().get(), 42);
  thread.wait();
}

TEST(DeviceThread, HasNothingToWaitForWithoutATask) {
  DeviceThread thread({});
  thread.wait();
  thread.submit([] {});
  thread.wait();
  thread.wait();
}

TEST(DeviceThread, FinishesItsTaskBeforeItEnds) {
  std::atomic<bool> released = false;
  bool finished = false;
  std::thread releaser;
  {
    DeviceThread thread({});
    thread.submit([&] {
      while (!released) std::this_thread::yield();
      finished = true;
    });
    releaser = std::thread([&] { released = true; });
  }
  EXPECT_TRUE(finished);
  releaser.join();
}

TEST(DeviceThread, TakesOneTaskAtATime) {
  std::atomic<bool> released = false;
  DeviceThread thread({});
  thread.submit([&] {
    while (!released) std::this_thread::yield();
  });
  EXPECT_THROW(thread.submit([] {}), Internal);
  released = true;
  thread.wait();
}

TEST(DeviceThread, DropsATaskOnceItHasRun) {
  auto owned = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owned;
  DeviceThread thread({});
  thread.submit([owned = std::move(owned)] {});
  thread.wait();
  EXPECT_TRUE(watch.expired());
}

TEST(DeviceThread, IsPinnedToItsCores) {
  const int core = allowed_cores().back().os_index;
  std::vector<int> allowed;
  DeviceThread thread({core});
  thread.submit([&] {
    for (const Core& found : allowed_cores()) allowed.push_back(found.os_index);
  });
  thread.wait();
  EXPECT_THAT(allowed, ElementsAre(core));
}

TEST(DeviceThread, RunsUnpinnedWhereItsCoresDoNotExist) {
  bool ran = false;
  DeviceThread thread({1'000'000});
  thread.submit([&] { ran = true; });
  thread.wait();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace cohort
