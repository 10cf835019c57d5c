#include "step_vote.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>

#include "strategy/collective_scopes.h"

namespace cohort::checkpoint {

StepVote::StepVote(StrategyExtended& strategy, const std::string& purpose)
    : purpose_(fingerprint_of(purpose), Caller::kWorker, [purpose] { return PurposeWords{purpose}; }),
      exceptions_at_start_(std::uncaught_exceptions()) {
  if (strategy.workers() == 1) return;
  // Members compare the purposes of calls that move data, but not that of a split.
  WorkersCollective collective(strategy, purpose_);
  Communicator& workers = strategy.workers_communicator();
  workers.barrier();
  communicator_ = workers.split(0);
  collective.end();
  scope_.emplace(*communicator_, CommunicationOptions{}, purpose_);
}

StepVote::~StepVote() {
  if (!work_) return;
  try {
    if (std::uncaught_exceptions() > exceptions_at_start_)
      abort(Aborted("{} ended its steps by an exception", name_of(communicator_->rank())));
  } catch (const std::exception& error) {
    logging::debug("the last vote before a step cannot be ended: {}", error.what());
  }
  settle();
}

void StepVote::settle() noexcept {
  try {
    static_cast<void>(result());
  } catch (const std::exception& error) {
    logging::debug("the last vote before a step: {}", error.what());
  }
}

std::int64_t StepVote::result() {
  if (std::optional<Work> work = std::exchange(work_, std::nullopt)) work->wait();
  return vote_.item<std::int64_t>();
}

std::int64_t StepVote::cast(std::int64_t own) {
  const std::int64_t before = result();
  vote_.span<std::int64_t>()[0] = own;
  if (communicator_ != nullptr) work_ = communicator_->all_reduce_async(vote_, ReduceOp::kMax);
  return before;
}

std::int64_t StepVote::cast_and_wait(std::int64_t own) {
  const std::int64_t before = cast(own);
  return std::max(before, result());
}

void StepVote::abort(const Error& error) {
  if (communicator_ != nullptr) communicator_->abort(error);
}

std::string StepVote::name_of(int worker) const {
  if (communicator_ == nullptr) return "this worker";
  return fmt::format("worker {} (host {})", worker,
                     communicator_->members()[static_cast<std::size_t>(worker)].host);
}

}  // namespace cohort::checkpoint
