#include <cohort/collective/communication_scope.h>

#include <cohort/base/fingerprint.h>

namespace cohort {

CommunicationScope::CommunicationScope(Communicator& communicator, const CommunicationOptions& options)
    : communicator_(communicator),
      outer_options_(communicator.options_),
      outer_timeout_(communicator.scope_timeout_),
      outer_purpose_(communicator.purpose_) {
  options.validate();
  communicator.options_ = outer_options_.merge(options);
  if (options.timeout_seconds) communicator.scope_timeout_ = options.timeout_seconds;
  communicator.calls_are_plain_ = false;
}

CommunicationScope::CommunicationScope(Communicator& communicator, const CommunicationOptions& options,
                                       CallPurpose& purpose)
    : CommunicationScope(communicator, options) {
  const std::uint64_t before = purpose.fingerprint_;
  purpose.outer_ = outer_purpose_;
  purpose.fingerprint_ =
      outer_purpose_ == nullptr
          ? purpose.own_fingerprint_
          : Fingerprint().add(outer_purpose_->fingerprint()).add(purpose.own_fingerprint_).value();
  if (purpose.fingerprint_ != before) purpose.spoken_.reset();
  communicator.purpose_ = &purpose;
}

CommunicationScope::~CommunicationScope() {
  communicator_.options_ = outer_options_;
  communicator_.scope_timeout_ = outer_timeout_;
  communicator_.purpose_ = outer_purpose_;
  communicator_.calls_are_plain_ = !outer_timeout_ && outer_purpose_ == nullptr &&
                                   outer_options_.implementation == CommunicationImplementation::kAuto &&
                                   outer_options_.hooks == nullptr;
}

}  // namespace cohort
