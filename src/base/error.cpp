#include <cohort/base/error.h>

namespace cohort {

std::string_view to_string(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid_argument";
    case ErrorCode::kWrongContext: return "wrong_context";
    case ErrorCode::kUnimplemented: return "unimplemented";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kDeadlineExceeded: return "deadline_exceeded";
    case ErrorCode::kAborted: return "aborted";
    case ErrorCode::kDataLoss: return "data_loss";
    case ErrorCode::kOutOfRange: return "out_of_range";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

void throw_error(ErrorCode code, const std::string& message, ErrorOrigin origin) {
  switch (code) {
    case ErrorCode::kInvalidArgument: throw InvalidArgument(std::move(origin), message);
    case ErrorCode::kWrongContext: throw WrongContext(std::move(origin), message);
    case ErrorCode::kUnimplemented: throw Unimplemented(std::move(origin), message);
    case ErrorCode::kUnavailable: throw Unavailable(std::move(origin), message);
    case ErrorCode::kDeadlineExceeded: throw DeadlineExceeded(std::move(origin), message);
    case ErrorCode::kAborted: throw Aborted(std::move(origin), message);
    case ErrorCode::kDataLoss: throw DataLoss(std::move(origin), message);
    case ErrorCode::kOutOfRange: throw OutOfRange(std::move(origin), message);
    case ErrorCode::kInternal: break;
  }
  throw Internal(std::move(origin), message);
}

void throw_error(const Error& error) { throw_error(error.code(), error.what(), error.origin()); }

namespace detail {
void check_failed(const char* condition, const char* file, int line) {
  throw Internal("{}:{}: check failed: {}. This is a bug in Cohort; please report it.", file, line,
                 condition);
}
}  // namespace detail

}  // namespace cohort
