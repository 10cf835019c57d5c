// Tasks and task groups, driven by hand: which goes on when, what becomes of results and errors, and that
// everything that a task holds is destroyed once, wherever it is when it ends.
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <cohort/collective/task.h>

#include "collective/task/task_group.h"

namespace cohort {
namespace {

/// Counts how many of them there are; owns memory, so that the address sanitizer sees a second destruction.
class Counted {
 public:
  Counted() { ++alive; }
  Counted(const Counted& other) : value_(std::make_unique<int>(*other.value_)) { ++alive; }
  Counted(Counted&& other) noexcept : value_(std::move(other.value_)) { ++alive; }
  Counted& operator=(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --alive; }

  [[nodiscard]] int value() const { return *value_; }

  static inline int alive = 0;

 private:
  std::unique_ptr<int> value_ = std::make_unique<int>(7);
};

/// A condition that a task waits for, opened by the test.
struct Door {
  bool open = false;

  [[nodiscard]] auto passed() {
    return until([this] { return std::exchange(open, false); });
  }
};

/// True at the end.
bool resume_through(Task<>& task, Door& door) {
  task.resume();
  door.open = true;
  return task.done();
}

/// How often it is resumed to its end, with the door opened each time.
int drive(Task<> task, Door& door) {
  int times = 1;
  while (!resume_through(task, door)) {
    EXPECT_TRUE(task.ready());
    ++times;
  }
  door.open = false;
  return times;
}

Task<int> twice(Door& door, int value) {
  co_await door.passed();
  co_return 2 * value;
}

Task<std::string> joined(Door& door, std::string first, std::string second) {
  co_await door.passed();
  co_return first + second;
}

Task<int> value_of(Door& door, Counted counted) {
  co_await door.passed();
  co_return counted.value();
}

Task<std::size_t> bytes_of(Door& door, std::span<const std::byte> bytes) {
  co_await door.passed();
  co_return bytes.size();
}

Task<> broken(Door& door, Counted /*counted*/) {
  co_await door.passed();
  throw std::runtime_error("broken");
}

Task<> nothing() { co_return; }

TEST(Task, BeginsWhenItIsFirstResumed) {
  bool began = false;
  const auto begin = [&]() -> Task<> {
    began = true;
    co_return;
  };
  Task<> task = begin();
  EXPECT_FALSE(began);
  task.resume();
  EXPECT_TRUE(began);
  EXPECT_TRUE(task.done());
}

TEST(Task, IsReadyWhenTheInnermostOneIs) {
  bool met = false;
  const auto inner = [&]() -> Task<> { co_await until([&] { return met; }); };
  const auto middle = [&]() -> Task<> { co_await inner(); };
  const auto outer = [&]() -> Task<> { co_await middle(); };
  Task<> task = outer();
  task.resume();
  EXPECT_FALSE(task.ready());
  EXPECT_FALSE(task.has_yielded());
  met = true;
  EXPECT_TRUE(task.ready());
  task.resume();
  EXPECT_TRUE(task.done());
}

TEST(Task, ThatYieldsIsReadyAtOnce) {
  const auto inner = []() -> Task<> { co_await yield(); };
  const auto outer = [&]() -> Task<> { co_await inner(); };
  Task<> task = outer();
  task.resume();
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(task.has_yielded());
  EXPECT_TRUE(task.ready());
}

TEST(Task, GivesItsResultToWhoAwaitsIt) {
  Door door;
  int sum = 0;
  std::unique_ptr<int> owned;
  const auto work = [&]() -> Task<> {
    sum = co_await twice(door, 3) + co_await twice(door, 4);
    while (sum < 20) sum += co_await twice(door, 1);
    const auto make = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
    owned = co_await make();
  };
  EXPECT_EQ(drive(work(), door), 2 + 3 + 1);
  EXPECT_EQ(sum, 20);
  EXPECT_EQ(*owned, 5);
}

TEST(Task, MayBeAwaitedAfterItWasResumed) {
  Door door;
  int result = 0;
  const auto work = [&]() -> Task<> {
    Task<int> waiting = twice(door, 3);
    waiting.resume();
    Task<int> at_its_end = twice(door, 4);
    door.open = true;
    at_its_end.resume();
    EXPECT_TRUE(at_its_end.done());
    result = co_await at_its_end;
    result += co_await waiting;
  };
  EXPECT_EQ(drive(work(), door), 2);
  EXPECT_EQ(result, 14);
}

TEST(Task, ThrowsWhereItIsAwaited) {
  Door door;
  std::string caught;
  const auto work = [&]() -> Task<> {
    try {
      co_await broken(door, Counted());
    } catch (const std::runtime_error& error) {
      caught = error.what();
    }
    co_await broken(door, Counted());
  };
  Task<> task = work();
  resume_through(task, door);
  EXPECT_TRUE(task.ready());
  resume_through(task, door);
  EXPECT_EQ(caught, "broken");
  EXPECT_TRUE(task.ready());
  EXPECT_THROW(task.resume(), std::runtime_error);
  EXPECT_TRUE(task.done());
}

/// What the library does in awaited expressions: objects by value, spans of braces, tasks as arguments.
Task<> much(Door& door, TaskGroup& group, std::string& result) {
  const Counted local;
  const std::byte bytes[3]{};
  group.add(broken(door, Counted()));
  result =
      co_await joined(door, std::string(40, 'a'), "and another one that is too long to lie in the string");
  result += std::to_string(co_await value_of(door, Counted()) + co_await value_of(door, local));
  result += std::to_string(co_await bytes_of(door, {bytes, sizeof bytes}));
  TaskGroup others;
  const std::size_t first = others.add(nothing());
  co_await others.wait_for(first);
  co_await others.run_alongside(nothing());
  const auto wrapped = [&](Counted counted) -> Task<> { co_await value_of(door, counted); };
  co_await others.run_alongside(wrapped(local));
  others.add(wrapped(Counted()));
  co_await others.wait_for_all();
}

TEST(Task, DestroysWhatItHoldsOnceWhereverItEnds) {
  constexpr int kMost = 100;
  bool ended = false;
  for (int times = 0; !ended && times < kMost; ++times) {
    Door door;
    TaskGroup group;
    std::string result;
    {
      Task<> task = much(door, group, result);
      for (int time = 0; !ended && time < times; ++time) ended = resume_through(task, door);
    }
    if (ended) {
      EXPECT_EQ(result.substr(result.size() - 3), "143");
    }
    group = TaskGroup();
    EXPECT_EQ(Counted::alive, 0) << "destroyed after it was resumed " << times << " times";
  }
  EXPECT_TRUE(ended);
}

/// Takes that many steps, and writes its name down at each of them.
Task<> stepping(std::string name, int steps, std::string& log) {
  for (int step = 0; step < steps; ++step) {
    log += name;
    co_await yield();
  }
}

TEST(TaskGroup, LetsAllOfItsTasksGoOn) {
  std::string log;
  TaskGroup group;
  EXPECT_EQ(group.add(stepping("a", 2, log)), 0U);
  EXPECT_EQ(group.add(stepping("b", 1, log)), 1U);
  EXPECT_TRUE(group.advance());
  EXPECT_EQ(log, "ab");
  EXPECT_TRUE(group.advance());
  EXPECT_EQ(log, "aba");
  EXPECT_FALSE(group.done(0));
  EXPECT_TRUE(group.done(1));
  EXPECT_TRUE(group.advance());
  EXPECT_TRUE(group.done());
  EXPECT_FALSE(group.advance());
  EXPECT_EQ(group.add(nothing()), 2U) << "numbers are those of its whole life";
}

TEST(TaskGroup, DrivesTheOthersWhileOneIsWaitedFor) {
  Door door;
  std::string log;
  TaskGroup group;
  const std::size_t slow = group.add(stepping("s", 3, log));
  const std::size_t quick = group.add(stepping("q", 1, log));
  const auto work = [&]() -> Task<> {
    co_await group.wait_for(quick);
    log += "|";
    co_await group.run_alongside(stepping("t", 1, log));
    log += "|";
    co_await group.wait_for(slow);
  };
  drive(work(), door);
  EXPECT_EQ(log, "sqs|st|");
  EXPECT_TRUE(group.done());
}

TEST(TaskGroup, ThrowsWhatATaskThrowsToWhoDrivesIt) {
  Door door;
  std::string log;
  TaskGroup group;
  group.add(broken(door, Counted()));
  EXPECT_THROW(drive(group.run_alongside(stepping("t", 100, log)), door), std::runtime_error);
}

}  // namespace
}  // namespace cohort
