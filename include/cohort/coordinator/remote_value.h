// The result of a function that was scheduled: there some time later, or an error instead. A handle; any
// thread may use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <cohort/base/error.h>
#include <cohort/server/detail/codec.h>
#include <cohort/value/structure.h>

namespace cohort {

namespace server {
class Connections;
}

namespace coordinator {

/// What all handles of one result share. Internal.
class RemoteState {
 public:
  explicit RemoteState(std::shared_ptr<server::Connections> connections) noexcept
      : connections_(std::move(connections)) {}

  /// Once; what waits for it sees it afterwards.
  void succeed(std::span<const std::byte> result);
  void fail(const Error& error);

  [[nodiscard]] bool is_settled() const noexcept { return settled_.load(std::memory_order_acquire); }

  /// Waits for the result, as encoded. @throws the error of the function, each time.
  [[nodiscard]] std::span<const std::byte> wait() const;

 private:
  std::shared_ptr<server::Connections> connections_;
  std::atomic<bool> settled_{false};
  std::vector<std::byte> result_;
  std::unique_ptr<Error> failure_;
};

}  // namespace coordinator

template <class T>
class RemoteValue {
 public:
  explicit RemoteValue(std::shared_ptr<const coordinator::RemoteState> state) noexcept
      : state_(std::move(state)) {}

  /// Waits for the function to end, and returns its result.
  /// @throws what the function threw, Aborted where it was cancelled because another one failed: schedule it
  /// again.
  T get() const {
    const std::span<const std::byte> result = state_->wait();
    if constexpr (!std::is_void_v<T>) {
      server::Decoder decoder(result);
      return server::decode<T>(decoder);
    }
  }
  T fetch() const { return get(); }

  /// Whether `get` would return, or throw, at once.
  [[nodiscard]] bool is_ready() const noexcept { return state_->is_settled(); }

 private:
  std::shared_ptr<const coordinator::RemoteState> state_;
};

namespace coordinator {

/// `value` with the value of each RemoteValue in its place; what is none stays as it is. Internal.
template <class T>
auto fetch_all(const T& value) {
  if constexpr (cohort::detail::kIsInstance<T, RemoteValue>) {
    return value.get();
  } else if constexpr (cohort::detail::kIsInstance<T, std::vector>) {
    std::vector<decltype(fetch_all(value.front()))> result;
    result.reserve(value.size());
    for (const auto& element : value) result.push_back(fetch_all(element));
    return result;
  } else if constexpr (cohort::detail::kIsInstance<T, std::map>) {
    std::map<typename T::key_type, decltype(fetch_all(value.begin()->second))> result;
    for (const auto& [key, element] : value) result.emplace(key, fetch_all(element));
    return result;
  } else if constexpr (cohort::detail::kIsInstance<T, std::tuple>) {
    // Braces, since these are fetched from left to right.
    return std::apply(
        [](const auto&... parts) { return std::tuple<decltype(fetch_all(parts))...>{fetch_all(parts)...}; },
        value);
  } else {
    return value;
  }
}

}  // namespace coordinator

}  // namespace cohort
