// A function that was scheduled, with its arguments, until it has ended.
#pragma once

#include <cstdint>
#include <memory>

#include <cohort/coordinator/detail/function.h>
#include <cohort/coordinator/remote_value.h>

namespace cohort::coordinator {

struct Call {
  FunctionNumber function = 0;
  EncodedArguments arguments = {};
  std::shared_ptr<RemoteState> state = {};
  std::uint64_t place = 0;   ///< in the order of scheduling
  std::uint64_t number = 0;  ///< among those of the worker that it was given to
  int losses = 0;            ///< of workers while they ran it
};

}  // namespace cohort::coordinator
