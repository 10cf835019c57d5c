#include "workers.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <cohort/base/error.h>
#include <cohort/base/fingerprint.h>
#include <cohort/base/log.h>
#include <cohort/collective/call_purpose.h>
#include <cohort/collective/communication_scope.h>

#include "base/vote.h"
#include "collective/packing/tensor_lists.h"
#include "strategy/collective_scopes.h"

namespace cohort::checkpoint {
namespace {

// What travels: whether it is an error, and of which code; then the text.
constexpr char kNoError = '\0';

std::string result_of(const std::function<std::string()>& work) {
  const auto error = [](ErrorCode code, const char* text) {
    return std::string(1, static_cast<char>(static_cast<int>(code) + 1)) + text;
  };
  try {
    return std::string(1, kNoError) + work();
  } catch (const Error& thrown) {
    return error(thrown.code(), thrown.what());
  } catch (const std::bad_alloc&) {
    return error(ErrorCode::kUnavailable, "out of memory");
  } catch (const std::exception& thrown) {
    return error(ErrorCode::kInternal, thrown.what());
  }
}

}  // namespace

Workers::Workers(StrategyExtended& strategy, std::string_view action, const std::string& path,
                 double timeout_seconds)
    : communicator_(strategy.workers() == 1 ? nullptr : &strategy.workers_communicator()),
      fingerprint_(fingerprint_of(action)),
      action_(fmt::format("{} '{}'", action, path)),
      timeout_seconds_(timeout_seconds) {}

std::unique_ptr<Communicator> Workers::make_group(int color) const {
  return communicator_ == nullptr ? nullptr : communicator_->split(color);
}

Workers Workers::on(Communicator& communicator) const {
  Workers others = *this;
  others.communicator_ = &communicator;
  return others;
}

std::string Workers::name_of(int worker) const {
  const MemberInfo& info = communicator_->members()[static_cast<std::size_t>(worker)];
  return fmt::format("worker {} (host {})", worker, info.host);
}

std::vector<std::string> Workers::together(const std::function<std::string()>& work) const {
  if (size() == 1) return {work()};
  const std::string own = result_of(work);
  PurposeOf purpose(fingerprint_, Caller::kWorker, [&] { return PurposeWords{action_}; });
  const CommunicationScope scope(*communicator_, {.timeout_seconds = timeout_seconds_}, purpose);
  const std::vector<std::uint8_t> bytes(own.begin(), own.end());
  std::vector<std::string> results;
  std::optional<Error> failure;
  std::string text;
  for (const Tensor& tensor : all_gather_tensors(*communicator_, Tensor::from(bytes))) {
    const auto received = tensor.span<std::uint8_t>();
    const auto worker = static_cast<int>(results.size());
    results.emplace_back(received.begin() + 1, received.end());
    if (received.front() == kNoError) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name_of(worker), results.back());
    if (!failure) {
      failure.emplace(
          static_cast<ErrorCode>(received.front() - 1), "",
          ErrorOrigin{action_, worker, communicator_->members()[static_cast<std::size_t>(worker)].host});
    }
  }
  if (failure) throw_error(failure->code(), text, failure->origin());
  return results;
}

void Workers::together_do(const std::function<void()>& work) const {
  static_cast<void>(together([&] {
    work();
    return std::string();
  }));
}

void Workers::first_does(const std::function<void()>& work) const {
  together_do([&] {
    if (is_first()) work();
  });
}

void Workers::broadcast(const Tensor& tensor, int root) const {
  if (size() == 1) return;
  PurposeOf purpose(fingerprint_, Caller::kWorker, [&] { return PurposeWords{action_}; });
  const CommunicationScope scope(*communicator_, {.timeout_seconds = timeout_seconds_}, purpose);
  communicator_->broadcast(tensor, root);
}

void Workers::agree(const std::function<std::string()>& text, const std::string& what) const {
  // The texts are long and hardly ever differ.
  std::string own;
  const auto fingerprints = together([&] {
    own = text();
    return size() == 1 ? std::string() : std::to_string(fingerprint_of(own));
  });
  const Vote vote = count_votes(fingerprints);
  if (vote.is_unanimous()) return;
  const auto texts = together([&] { return own; });
  const auto [one, other] = std::minmax(vote.usual, vote.odd.front());
  const auto [line_of_one, line_of_other] = first_difference(texts[one], texts[other], "nothing more");
  throw InvalidArgument("{} differ: {} has {}, {} has {}", what, name_of(static_cast<int>(one)), line_of_one,
                        name_of(static_cast<int>(other)), line_of_other);
}

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
