// Errors are exceptions of one hierarchy. Each carries a code, so that a program
// can react to the kind of failure, and a text that says what was called, who is
// to blame and what to do.
//
// Catch `cohort::Error` for everything Cohort throws, or one of the aliases below
// (`InvalidArgument`, `WrongContext`, ...) for one kind. Thread-safe: errors are
// immutable values.
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
  [[nodiscard]] const ErrorOrigin& origin() const noexcept { return origin_; }

 private:
  ErrorCode code_;
  ErrorOrigin origin_;
};

/// One kind of error; the constructor formats its message.
template <ErrorCode kCode>
class CodedError : public Error {
 public:
  template <class... Args>
  explicit CodedError(fmt::format_string<Args...> format, Args&&... args)
      : Error(kCode, fmt::format(format, std::forward<Args>(args)...)) {}

  CodedError(ErrorOrigin origin, const std::string& message) : Error(kCode, message, std::move(origin)) {}
};

using InvalidArgument = CodedError<ErrorCode::kInvalidArgument>;
using WrongContext = CodedError<ErrorCode::kWrongContext>;
using Unimplemented = CodedError<ErrorCode::kUnimplemented>;
using Unavailable = CodedError<ErrorCode::kUnavailable>;
using DeadlineExceeded = CodedError<ErrorCode::kDeadlineExceeded>;
using Aborted = CodedError<ErrorCode::kAborted>;
using DataLoss = CodedError<ErrorCode::kDataLoss>;
using OutOfRange = CodedError<ErrorCode::kOutOfRange>;
using Internal = CodedError<ErrorCode::kInternal>;

/// Throws the alias that belongs to `code`; for errors that arrived as data from another member.
[[noreturn]] void throw_error(ErrorCode code, const std::string& message, ErrorOrigin origin = {});

/// The same for an error that was kept: it is caught by its alias, as it was when it was thrown first.
[[noreturn]] void throw_error(const Error& error);

namespace detail {
[[noreturn]] void check_failed(const char* condition, const char* file, int line);
}

}  // namespace cohort

/// Checks what can only be Cohort's own mistake; never used on a caller's input.
#define COHORT_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::cohort::detail::check_failed(#condition, __FILE__, __LINE__))
