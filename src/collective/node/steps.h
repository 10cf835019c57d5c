// An algorithm in flight: a coroutine that suspends where it has to wait for other
// members, so that it reads like the sentence that describes it and yet never blocks.
//
//   Steps exchange(...) {
//     publish();
//     co_await until([&] { return peer_has_published(); });
//     read();
//   }
//
// Whoever drives it resumes it when `ready()`; one thread at a time.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "frames.h"

namespace cohort::node {

class Steps {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Steps get_return_object() { return Steps(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { error = std::current_exception(); }

    // NOLINTNEXTLINE(misc-new-delete-overloads): the sized form below is the matching one
    static void* operator new(std::size_t bytes) { return allocate_frame(bytes); }
    static void operator delete(void* frame, std::size_t bytes) noexcept { release_frame(frame, bytes); }

    bool (*is_met)(void* condition) = nullptr;
    void* condition = nullptr;
    std::exception_ptr error;
  };

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
    promise_type& promise = handle_.promise();
    return promise.is_met == nullptr || promise.is_met(promise.condition);
  }

  /// Goes on until the next wait or the end. @throws what the algorithm throws.
  void resume() {
    handle_.promise().is_met = nullptr;
    handle_.resume();
    if (handle_.done() && handle_.promise().error) std::rethrow_exception(handle_.promise().error);
  }

 private:
  explicit Steps(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  void destroy() noexcept {
    if (handle_ != nullptr) handle_.destroy();
  }
  std::coroutine_handle<promise_type> handle_ = nullptr;
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

/// Waits until another algorithm has ended, and drives it meanwhile.
[[nodiscard]] inline auto finished(Steps& steps) {
  return until([&steps] {
    while (!steps.done() && steps.ready()) steps.resume();
    return steps.done();
  });
}

}  // namespace cohort::node
