// Errors are exceptions of one hierarchy. Each carries a code, so that a program
// can react to the kind of failure, and a text that says what was called, who is
// to blame and what to do.
//
// Catch `cohort::Error` for everything Cohort throws, or one of the classes below
// (`InvalidArgument`, `WrongContext`, ...) for one kind. Thread-safe: errors are
// immutable values. One that nobody catches ends the program as any C++ exception does:
// the compiler's runtime prints the name of its class and its text.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cohort {

enum class ErrorCode {
  kInvalidArgument,   ///< the caller passed something unusable: nothing was changed
  kWrongContext,      ///< called in a context (replica, cross-replica, update) where it makes no sense
  kUnimplemented,     ///< a legal request that this version cannot serve
  kUnavailable,       ///< a worker, device or resource is gone or was never there
  kDeadlineExceeded,  ///< a member did not arrive in time; the text names it
  kAborted,           ///< given up because another member failed first
  kDataLoss,          ///< input that is damaged or cannot be read
  kOutOfRange,        ///< asked for more than there is: the data has ended
  kInternal,          ///< our own mistake: please report it
};

/// The code's name as it appears in messages, for example `invalid_argument`.
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// Where an error arose, as far as it is known.
struct ErrorOrigin {
  std::string call;  ///< what was called, for example `all_reduce #12`
  int member = -1;   ///< the member (or worker) that caused it, -1 when unknown
  std::string host;  ///< the host of that member, empty when unknown
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, ErrorOrigin origin = {})
      : std::runtime_error(message), code_(code), origin_(std::move(origin)) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const ErrorOrigin& origin() const& noexcept { return origin_; }
  [[nodiscard]] ErrorOrigin origin() && { return std::move(origin_); }

 private:
  ErrorCode code_;
  ErrorOrigin origin_;
};

namespace detail {

/// One kind of error; the constructor formats its message.
template <ErrorCode kCode>
class CodedError : public Error {
 public:
  template <class... Args>
  explicit CodedError(fmt::format_string<Args...> format, Args&&... args)
      : Error(kCode, fmt::format(format, std::forward<Args>(args)...)) {}

  CodedError(ErrorOrigin origin, const std::string& message) : Error(kCode, message, std::move(origin)) {}
};

}  // namespace detail

// Classes and no aliases: the name of the class is what a reader sees of an error that nobody caught.
class InvalidArgument : public detail::CodedError<ErrorCode::kInvalidArgument> {
  using CodedError::CodedError;
};
class WrongContext : public detail::CodedError<ErrorCode::kWrongContext> {
  using CodedError::CodedError;
};
class Unimplemented : public detail::CodedError<ErrorCode::kUnimplemented> {
  using CodedError::CodedError;
};
class Unavailable : public detail::CodedError<ErrorCode::kUnavailable> {
  using CodedError::CodedError;
};
class DeadlineExceeded : public detail::CodedError<ErrorCode::kDeadlineExceeded> {
  using CodedError::CodedError;
};
class Aborted : public detail::CodedError<ErrorCode::kAborted> {
  using CodedError::CodedError;
};
class DataLoss : public detail::CodedError<ErrorCode::kDataLoss> {
  using CodedError::CodedError;
};
class OutOfRange : public detail::CodedError<ErrorCode::kOutOfRange> {
  using CodedError::CodedError;
};
class Internal : public detail::CodedError<ErrorCode::kInternal> {
  using CodedError::CodedError;
};

/// Throws the class that belongs to `code`; for errors that arrived as data from another member.
[[noreturn]] void throw_error(ErrorCode code, const std::string& message, ErrorOrigin origin = {});

/// The same for an error that was kept: it is caught by its class, as it was when it was thrown first.
[[noreturn]] void throw_error(const Error& error);

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

}  // namespace cohort

/// Checks what can only be Cohort's own mistake; never used on a caller's input.
#define COHORT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::cohort::detail::check_failed(#condition, __FILE__, __LINE__))
