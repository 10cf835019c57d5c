// Options for all calls of a block, for example for the reductions that a strategy makes for one
// function of the program. Scopes of one communicator end in the reverse order of their beginning.
#pragma once

#include <optional>

#include <cohort/collective/communicator.h>

namespace cohort {

/// While it lives, the calls of one communicator use the options that are set in `options`.
class [[nodiscard]] CommunicationScope {
 public:
  /// @throws InvalidArgument for options that are not valid.
  CommunicationScope(Communicator& communicator, const CommunicationOptions& options);
  /// `purpose` is what the calls are made for, on which members must agree as well. It outlives the scope.
  CommunicationScope(Communicator& communicator, const CommunicationOptions& options, CallPurpose& purpose);
  ~CommunicationScope();

  CommunicationScope(const CommunicationScope&) = delete;
  CommunicationScope& operator=(const CommunicationScope&) = delete;

 private:
  Communicator& communicator_;
  CommunicationOptions outer_options_;
  std::optional<double> outer_timeout_;
  const CallPurpose* outer_purpose_;
};

}  // namespace cohort
