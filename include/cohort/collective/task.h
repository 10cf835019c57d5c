// A Task is an algorithm in flight: a coroutine that suspends where it has to wait for other
// members. So it reads like the sentence that describes it, and yet never blocks a thread.
//
//   Task<bool> exchange(...) {
//     publish();                                            // runs at once
//     co_await until([&] { return peer_has_published(); });  // waits for a condition
//     const Header header = co_await read_header(...);       // runs another Task to its end
//     co_await yield();                                      // lets more urgent calls go first
//     co_return header.is_valid;                             // the result of `co_await exchange(...)`
//   }
//
// Driving it. Nothing happens before the first `resume()` or `co_await`. The driver of the outermost task (a
// caller that waits, or the progress thread) asks `ready()` and calls `resume()`, one thread at a time, until
// `done()`. While a task awaits another one, both functions act on the innermost, so the driver sees one
// task, however deep the tasks are nested. Inside the library, several tasks that go on side by side are a
// TaskGroup.
//
// Errors. What a task throws is rethrown where the task is awaited; for the outermost task, by `resume()`.
//
// Lifetime. A Task owns its coroutine: destroying it ends the algorithm where it stands, together with all
// that it awaits. Parameters by value live as long as the Task; what references and pointers refer to must
// outlive it. So must a lambda that is a coroutine, because its captures lie in the lambda. In `co_await
// f(...)` temporary arguments live until `f` has ended. A task that was resumed already may be awaited later.
//
// With GCC 12, await in a statement of its own, as above: it miscompiles an await in the condition of an `if`
// or a loop, after `&&` and in `?:` (tests/checks/awaits.sh). It also destroys some temporaries twice. So if
// an argument is made by `?:`, by braces or by a lambda with captures, and its type has a destructor, store
// it in a named variable before the `co_await`.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

namespace cohort {

namespace detail {

/// The state of a coroutine that does not depend on the type of its result.
struct TaskFrame {
  TaskFrame() = default;
  TaskFrame(const TaskFrame&) = delete;
  TaskFrame& operator=(const TaskFrame&) = delete;
  ~TaskFrame() = default;

  // NOLINTNEXTLINE(misc-new-delete-overloads): the sized form below is the matching one
  static void* operator new(std::size_t bytes);
  static void operator delete(void* frame, std::size_t bytes) noexcept;

  std::suspend_always initial_suspend() noexcept { return {}; }
  std::suspend_always final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { error = std::current_exception(); }

  [[nodiscard]] bool ready() const { return is_met == nullptr || is_met(condition); }
  void resume() {
    is_met = nullptr;
    coroutine.resume();
  }

  std::coroutine_handle<> coroutine;
  bool (*is_met)(void* condition) = nullptr;  ///< null where it waits for nothing
  void* condition = nullptr;
  std::exception_ptr error;

  TaskFrame* caller = nullptr;  ///< the task that awaits this one
  TaskFrame* innermost = this;  ///< of an outermost task: the one that `resume()` continues
};

template <class T>
struct TaskResult {
  template <class Value>
  void return_value(Value&& value) {
    result.emplace(std::forward<Value>(value));
  }
  [[nodiscard]] T take() { return *std::move(result); }

  std::optional<T> result;
};

template <>
struct TaskResult<void> {
  void return_void() noexcept {}
  void take() noexcept {}
};

}  // namespace detail

template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type;  // NOLINT(readability-identifier-naming): the language's name for it
  class Awaiter;

  /// No task; assign one before use.
  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() { destroy(); }

  [[nodiscard]] bool valid() const noexcept { return handle_ != nullptr; }

  /// For another task: drives this one to its end and gives its result, once.
  /// @throws what it throws.
  [[nodiscard]] Awaiter operator co_await() const noexcept { return Awaiter(handle_); }

  [[nodiscard]] bool done() const noexcept { return handle_.done(); }

  /// Whether the condition that it waits for is met.
  [[nodiscard]] bool ready() const { return handle_.promise().innermost->ready(); }

  /// Whether it waits for nothing, and has only stopped to let others go first.
  [[nodiscard]] bool has_yielded() const noexcept { return handle_.promise().innermost->is_met == nullptr; }

  /// Goes on until the next wait, the next yield or the end. @throws what the algorithm throws.
  void resume() {
    detail::TaskFrame& outermost = handle_.promise();
    outermost.innermost->resume();
    while (outermost.innermost != &outermost && outermost.innermost->coroutine.done()) {
      outermost.innermost = outermost.innermost->caller;
      outermost.innermost->resume();
    }
    if (handle_.done() && outermost.error) std::rethrow_exception(outermost.error);
  }

 private:
  using Handle = std::coroutine_handle<promise_type>;

  explicit Task(Handle handle) : handle_(handle) {}
  void destroy() noexcept {
    if (handle_ != nullptr) handle_.destroy();
  }

  Handle handle_ = nullptr;
};

template <class T>
// NOLINTNEXTLINE(readability-identifier-naming): the language's name for it
struct Task<T>::promise_type : detail::TaskFrame, detail::TaskResult<T> {
  Task get_return_object() {
    const Handle handle = Handle::from_promise(*this);
    coroutine = handle;
    return Task(handle);
  }
};

template <class T>
class Task<T>::Awaiter {
 public:
  explicit Awaiter(Handle callee) noexcept : callee_(callee) {}
  [[nodiscard]] bool await_ready() const noexcept { return callee_.done(); }

  template <class Promise>
  [[nodiscard]] std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> caller) noexcept {
    detail::TaskFrame& callee = callee_.promise();
    callee.caller = &caller.promise();
    detail::TaskFrame* outermost = callee.caller;
    while (outermost->caller != nullptr) outermost = outermost->caller;
    outermost->innermost = callee.innermost;
    // A task that was resumed before may be waiting for a condition.
    if (callee.innermost->is_met != nullptr) return std::noop_coroutine();
    return callee.innermost->coroutine;
  }

  T await_resume() const {
    if (callee_.promise().error) std::rethrow_exception(callee_.promise().error);
    return callee_.promise().take();
  }

 private:
  Handle callee_;
};

template <class Condition>
class Until {
 public:
  explicit Until(Condition condition) : condition_(std::move(condition)) {}
  [[nodiscard]] bool await_ready() { return condition_(); }

  template <class Promise>
  void await_suspend(std::coroutine_handle<Promise> handle) noexcept {
    detail::TaskFrame& frame = handle.promise();
    frame.condition = &condition_;
    frame.is_met = [](void* condition) { return (*static_cast<Condition*>(condition))(); };
  }
  void await_resume() const noexcept {}

 private:
  Condition condition_;  // lives in the coroutine's frame while it waits
};

/// Waits until `condition()` is true.
template <class Condition>
[[nodiscard]] Until<Condition> until(Condition condition) {
  return Until<Condition>(std::move(condition));
}

/// In the middle of long work, lets more urgent calls go first.
[[nodiscard]] inline std::suspend_always yield() noexcept { return {}; }

}  // namespace cohort
