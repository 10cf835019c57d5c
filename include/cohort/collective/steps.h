// An algorithm in flight: a coroutine that suspends where it has to wait for other
// members, so that it reads like the sentence that describes it and yet never blocks.
//
//   Steps exchange(...) {
//     publish();
//     co_await until([&] { return peer_has_published(); });
//     read();
//   }
//
// Whoever drives it resumes it when `ready()`; one thread at a time. An algorithm may wait
// for another one, which then is what goes on: resuming and asking reach the innermost.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace cohort {

class Steps {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name for it
    Steps get_return_object() { return Steps(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }

    // NOLINTNEXTLINE(misc-new-delete-overloads): the sized form below is the matching one
    static void* operator new(std::size_t bytes);
    static void operator delete(void* frame, std::size_t bytes) noexcept;

    bool (*is_met)(void* condition) = nullptr;
    void* condition = nullptr;
    std::exception_ptr error;

    promise_type* caller = nullptr;  ///< who waits for this one
    promise_type* innermost = this;  ///< of one that nobody waits for: what goes on when it is resumed
  };
  using Handle = std::coroutine_handle<promise_type>;

  Steps() = default;
  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Steps& operator=(Steps&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() { destroy(); }

  [[nodiscard]] bool started() const noexcept { return handle_ != nullptr; }
  [[nodiscard]] bool done() const noexcept { return handle_.done(); }

  /// Whether what it waits for has come.
  [[nodiscard]] bool ready() const {
    const promise_type& promise = *handle_.promise().innermost;
    return promise.is_met == nullptr || promise.is_met(promise.condition);
  }

  /// It waits for nothing, and has stopped to let others go first.
  [[nodiscard]] bool rests() const noexcept { return handle_.promise().innermost->is_met == nullptr; }

  /// Goes on until the next wait, the next rest or the end. @throws what the algorithm throws.
  void resume() {
    promise_type& outermost = handle_.promise();
    go_on(*outermost.innermost);
    while (outermost.innermost != &outermost && Handle::from_promise(*outermost.innermost).done()) {
      outermost.innermost = outermost.innermost->caller;
      go_on(*outermost.innermost);
    }
    if (handle_.done() && outermost.error) std::rethrow_exception(outermost.error);
  }

 private:
  friend class Finished;
  explicit Steps(Handle handle) : handle_(handle) {}
  static void go_on(promise_type& promise) {
    promise.is_met = nullptr;
    Handle::from_promise(promise).resume();
  }
  void destroy() noexcept {
    if (handle_ != nullptr) handle_.destroy();
  }
  Handle handle_ = nullptr;
};

template <class Condition>
class Until {
 public:
  explicit Until(Condition condition) : condition_(std::move(condition)) {}
  bool await_ready() { return condition_(); }
  void await_suspend(std::coroutine_handle<Steps::promise_type> handle) noexcept {
    handle.promise().condition = &condition_;
    handle.promise().is_met = [](void* condition) { return (*static_cast<Condition*>(condition))(); };
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

/// Lets others go first that are more urgent, in the middle of long work.
[[nodiscard]] inline std::suspend_always rest() noexcept { return {}; }

class Finished {
 public:
  explicit Finished(Steps& steps) noexcept : callee_(steps.handle_) {}
  [[nodiscard]] bool await_ready() const noexcept { return callee_.done(); }
  std::coroutine_handle<> await_suspend(Steps::Handle caller) noexcept {
    Steps::promise_type& callee = callee_.promise();
    callee.caller = &caller.promise();
    Steps::promise_type* outermost = &caller.promise();
    while (outermost->caller != nullptr) outermost = outermost->caller;
    outermost->innermost = callee.innermost;
    // One that was started before may have something to wait for.
    if (callee.innermost->is_met != nullptr) return std::noop_coroutine();
    return Steps::Handle::from_promise(*callee.innermost);
  }
  void await_resume() const {
    if (callee_.promise().error) std::rethrow_exception(callee_.promise().error);
  }

 private:
  Steps::Handle callee_;
};

/// Waits until another algorithm has ended, and drives it meanwhile. @throws what it throws.
[[nodiscard]] inline Finished finished(Steps& steps) { return Finished(steps); }

}  // namespace cohort
