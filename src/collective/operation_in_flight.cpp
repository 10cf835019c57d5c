#include "operation_in_flight.h"

#include <exception>
#include <new>

#include <fmt/format.h>

namespace cohort {

Error error_being_handled(const std::string& member) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Unavailable("{} is out of memory", member);
  } catch (const std::exception& error) {
    return Internal("{}: {}", member, error.what());
  }
}

std::optional<Error> error_of_unwinding(int rank, const MemberInfo& info, bool calls_in_flight) {
  if (std::uncaught_exceptions() == 0) return std::nullopt;
  return Aborted(ErrorOrigin{"", rank, info.host},
                 fmt::format("{} left the communicator because of an error{}", describe(rank, info),
                             calls_in_flight ? ", with calls in flight" : ""));
}

}  // namespace cohort
