// The answer to a call of another task's method: there some time later, or an error instead. A handle: copies
// denote the same answer, and any thread may use them. A Reply keeps its client's connection; a call whose
// Reply is dropped runs all the same while a handle of its client is left.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <cohort/base/deadline.h>
#include <cohort/base/error.h>
#include <cohort/rpc/detail/codec.h>

namespace cohort::rpc {

class ClientPart;
struct CallState;

/// What the replies of all types have.
class AnyReply {
 public:
  /// Internal: clients make them.
  AnyReply(std::shared_ptr<ClientPart> client, std::shared_ptr<CallState> call) noexcept;

  /// Whether `get` would return, or throw, at once.
  [[nodiscard]] bool is_ready() const;

  /// Waits for the answer, no longer than until `deadline`; whether it is there.
  bool wait(Deadline deadline = Deadline::never()) const;

  /// Waits for the answer; whether it is no error.
  [[nodiscard]] bool is_ok() const { return !error().has_value(); }

  /// Waits for the answer; the error that `get` throws, or nothing.
  [[nodiscard]] std::optional<Error> error() const;

 protected:
  /// The result, as encoded. @throws the error of the call.
  [[nodiscard]] std::span<const std::byte> result() const;

 private:
  std::shared_ptr<ClientPart> client_;
  std::shared_ptr<CallState> call_;
};

template <class T>
class [[nodiscard]] Reply : public AnyReply {
 public:
  using AnyReply::AnyReply;

  /// Waits for the answer, and returns it. @throws each time what the method threw, by its code, and in its
  /// place: InvalidArgument for a method that the server does not have, or that takes or returns other
  /// types; DeadlineExceeded when the call's deadline has passed, whether or not the method has run;
  /// Unavailable when the server has ended or is lost, after which it is unknown whether the method has run.
  /// Each names the method and the server's job, index and host; `Error::origin` has them apart.
  T get() const {
    const std::span<const std::byte> bytes = result();
    if constexpr (!std::is_void_v<T>) {
      Decoder decoder(bytes);
      return decode<T>(decoder);
    }
  }
};

}  // namespace cohort::rpc
