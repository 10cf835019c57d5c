#include "replica_run.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "device/device_runtime.h"

namespace cohort {
namespace {

// Unwinds a replica whose merge will never happen. Not an std::exception, so that a
// program's own handlers do not take it for one of theirs.
struct ReplicaGivesUp {};

}  // namespace

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception that is not a std::exception";
  }
}

Aborted failure_for_others(std::string_view who, ErrorOrigin where, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Aborted& aborted) {
    return aborted;
  } catch (...) {
    return {std::move(where), fmt::format("{} failed first: {}", who, what_of(error))};
  }
}

std::shared_ptr<void> LoneMergePoint::meet(int /*local_replica*/, MergeRequest& request) {
  const ContextScope scope(ContextMode::cross_replica(strategy_));
  const InheritedCreators outside(strategy_ == nullptr ? VariableCreatorScope::innermost() : creators_);
  const InheritedScopes scopes(strategy_ == nullptr ? thread_scopes() : scopes_);
  void* const arguments[] = {request.arguments};
  return request.merge(arguments);
}

ReplicaTeam::ReplicaTeam(std::span<const std::vector<int>> cores) : runners_(cores.size()) {
  for (std::size_t i = 0; i < cores.size(); ++i)
    runners_[i].thread = std::make_unique<DeviceThread>(cores[i]);
}

ReplicaRun::ReplicaRun(StrategyExtended& extended, const std::function<void(ReplicaContext&)>& body,
                       ReplicaTeam& team)
    : extended_(extended),
      body_(body),
      runners_(team.runners_),
      pauses_(team.pauses_),
      releases_(team.releases_) {
  for (Runner& runner : runners_) {
    runner.phase = Phase::kRunning;
    runner.merges = 0;
    runner.collectives = 0;
  }
}

void ReplicaRun::execute() {
  for (std::size_t replica = 0; replica < runners_.size(); ++replica) {
    runners_[replica].thread->submit([this, replica] { run_replica(static_cast<int>(replica)); });
  }
  serve_merges();
  for (const Runner& runner : runners_) runner.thread->wait();
  const std::exception_ptr error = first_error();
  clear_runners();
  if (error != nullptr) std::rethrow_exception(error);
}

/// What the program threw or merged is the caller's from now on; the team lives longer.
void ReplicaRun::clear_runners() {
  for (Runner& runner : runners_) {
    runner.request = nullptr;
    runner.merged = nullptr;
    runner.error = nullptr;
  }
}

void ReplicaRun::run_replica(int local_replica) {
  ReplicaContext replica(extended_, local_replica, *this);
  const ContextScope scope(
      {ContextKind::kReplica, &extended_, &replica, local_replica, replica.device(), this});
  const InheritedCreators inherited(creators_);
  const InheritedScopes scopes(scopes_);
  try {
    const EnteredDevice entered(replica.device());
    body_(replica);
    pause(runner(local_replica), Phase::kDone);
  } catch (const ReplicaGivesUp&) {
    record_failure(local_replica, nullptr, Blame::kOther);
  } catch (const Aborted&) {
    record_failure(local_replica, std::current_exception(), Blame::kOtherIfAnyFailed);
  } catch (...) {
    record_failure(local_replica, std::current_exception(), Blame::kOwn);
  }
}

void ReplicaRun::pause(Runner& runner, Phase phase) {
  runner.phase = phase;
  pauses_.notify();
}

void ReplicaRun::record_failure(int local_replica, const std::exception_ptr& error, Blame blame) {
  Runner& own = runner(local_replica);
  const bool others_failed = ending_.exchange(true);
  if (blame == Blame::kOtherIfAnyFailed && others_failed) blame = Blame::kOther;
  own.blame = blame;
  own.error = error;
  releases_.notify();
  pause(own, Phase::kFailed);
  // Others may wait for this replica in a collective.
  if (blame != Blame::kOther) extended_.abort_replicas(local_replica, error);
}

std::shared_ptr<void> ReplicaRun::meet(int local_replica, MergeRequest& request) {
  Runner& own = runner(local_replica);
  if (ending_) throw ReplicaGivesUp();
  own.request = &request;
  pause(own, Phase::kMerging);
  releases_.wait_until([&] { return own.phase == Phase::kRunning || ending_; });
  if (own.phase != Phase::kRunning) throw ReplicaGivesUp();
  return std::move(own.merged);
}

// A replica that pauses or begins a collective notifies the calling thread after the change is visible.
void ReplicaRun::begin_collective(int local_replica, const CallPurpose& purpose) {
  Runner& own = runner(local_replica);
  own.purpose.store(&purpose, std::memory_order_release);
  ++own.collectives;
  const auto is_paused = [](const Runner& runner) { return runner.phase != Phase::kRunning; };
  if (std::ranges::any_of(runners_, is_paused)) pauses_.notify();
}

/// The purpose is on the replica's stack: while the calling thread puts it in words, it has taken it away.
void ReplicaRun::end_collective(int local_replica) {
  std::atomic<const CallPurpose*>& purpose = runner(local_replica).purpose;
  while (purpose.exchange(nullptr, std::memory_order_acq_rel) == nullptr) std::this_thread::yield();
}

std::string ReplicaRun::action_of(Runner& runner) {
  const CallPurpose* const purpose = runner.purpose.exchange(nullptr, std::memory_order_acq_rel);
  if (purpose == nullptr) return "has left";
  const auto give_back = [&](const CallPurpose* taken) {
    runner.purpose.store(taken, std::memory_order_release);
  };
  const std::unique_ptr<const CallPurpose, decltype(give_back)> taken(purpose, give_back);
  return taken->words().purpose.action;
}

std::string ReplicaRun::name_of(const Runner& runner) const {
  return extended_.replica_name(static_cast<std::size_t>(&runner - runners_.data()));
}

ReplicaRun::Runner* ReplicaRun::deserter() {
  if (extended_.has_aborted_replicas()) return nullptr;  // whoever waits is being told why already
  Runner* fewest = nullptr;
  int most = 0;
  for (Runner& runner : runners_) {
    const int collectives = runner.collectives;
    const bool is_paused = runner.phase != Phase::kRunning;
    if (!is_paused) most = std::max(most, collectives);
    if (is_paused && (fewest == nullptr || collectives < fewest->collectives)) fewest = &runner;
  }
  return fewest != nullptr && fewest->collectives < most ? fewest : nullptr;
}

std::exception_ptr ReplicaRun::unequal_collectives(Runner& deserter) {
  std::vector<std::string> waiting;
  for (Runner& runner : runners_) {
    if (runner.collectives > deserter.collectives)
      waiting.push_back(fmt::format("{} {}", name_of(runner), action_of(runner)));
  }
  const std::string elsewhere = deserter.phase == Phase::kMerging
                                    ? deserter.request->purpose.words().purpose.action
                                    : std::string("has returned from the replica function");
  return std::make_exception_ptr(WrongContext(
      "replicas made different collectives: {}, but {} {}, where they wait for it in collective {} "
      "of this run; every replica must make the same calls in the same order",
      fmt::join(waiting, ", "), name_of(deserter), elsewhere, deserter.collectives + 1));
}

bool ReplicaRun::all_paused() const {
  return std::none_of(runners_.begin(), runners_.end(),
                      [](const Runner& runner) { return runner.phase == Phase::kRunning; });
}

void ReplicaRun::serve_merges() {
  while (true) {
    Runner* left = nullptr;
    pauses_.wait_until([&] { return ending_ || all_paused() || (left = deserter()) != nullptr; });
    if (ending_) return;
    if (left != nullptr) {
      merge_error_ = unequal_collectives(*left);
      ending_ = true;
      releases_.notify();
      return extended_.abort_replicas(static_cast<int>(left - runners_.data()), merge_error_);
    }
    const auto merging = std::count_if(runners_.begin(), runners_.end(),
                                       [](const Runner& runner) { return runner.phase == Phase::kMerging; });
    if (merging == 0) return;
    if (merging == static_cast<std::ptrdiff_t>(runners_.size())) {
      merge_all();
    } else {
      merge_error_ = unequal_merges();
    }
    if (merge_error_ != nullptr) ending_ = true;
    releases_.notify();
  }
}

/// For replicas that meet for different purposes, `odd` and the first.
void ReplicaRun::throw_unequal_meeting(const Runner& odd) const {
  const Runner& first = runners_.front();
  PurposeWords mine = odd.request->purpose.words().purpose;
  PurposeWords others = first.request->purpose.words().purpose;
  if (mine.action == others.action) {
    for (PurposeWords* words : {&mine, &others})
      if (!words->details.empty()) words->action += fmt::format(" ({})", words->details);
  }
  const std::string text = fmt::format(
      "replicas meet in different calls: {} {}, {} {}; every replica must make the same calls in the same "
      "order",
      name_of(odd), mine.action, name_of(first), others.action);
  if (odd.request->call == first.request->call) throw InvalidArgument("{}", text);
  throw WrongContext("{}", text);
}

std::vector<void*> ReplicaRun::arguments_by_replica() const {
  std::vector<void*> arguments;
  arguments.reserve(runners_.size());
  const MergeRequest& first = *runners_.front().request;
  for (const Runner& runner : runners_) {
    const MergeRequest& request = *runner.request;
    if (request.purpose.fingerprint() != first.purpose.fingerprint()) throw_unequal_meeting(runner);
    if (request.argument_types != first.argument_types) {
      throw InvalidArgument(
          "{} of {}: {} passes arguments of other types, or a function with another type of result, than {}",
          request.call, extended_.strategy_name(), name_of(runner), name_of(runners_.front()));
    }
    arguments.push_back(request.arguments);
  }
  return arguments;
}

void ReplicaRun::merge_all() {
  std::shared_ptr<void> merged;
  try {
    const std::vector<void*> arguments = arguments_by_replica();
    const ContextScope scope(ContextMode::cross_replica(&extended_));
    merged = runners_.front().request->merge(arguments);
  } catch (...) {
    merge_error_ = std::current_exception();
    return;
  }
  for (Runner& runner : runners_) {
    runner.merged = merged;
    runner.request = nullptr;
    ++runner.merges;
    runner.phase = Phase::kRunning;
  }
}

std::exception_ptr ReplicaRun::unequal_merges() const {
  std::vector<std::string> waiting;
  std::vector<std::string> finished;
  std::string_view call;
  for (const Runner& runner : runners_) {
    if (runner.phase != Phase::kMerging) {
      finished.push_back(name_of(runner));
      continue;
    }
    call = runner.request->call;
    waiting.push_back(fmt::format("{} {}", name_of(runner), runner.request->purpose.words().purpose.action));
  }
  return std::make_exception_ptr(WrongContext(
      "replicas made a different number of {} calls: {} and waits, as meeting {} of this run, for the "
      "others, but {} {} returned from the replica function; every replica must make the same calls equally "
      "often",
      call, fmt::join(waiting, ", "), runners_.front().merges + 1, fmt::join(finished, ", "),
      finished.size() == 1 ? "has" : "have"));
}

std::exception_ptr ReplicaRun::first_error() const {
  if (merge_error_) return merge_error_;
  // A replica that cannot make a collective ends those of the others before its own error has left it. So the
  // others' Aborted may come first, but counts only if no replica failed by itself: each may have handled its
  // own error.
  for (const Blame blame : {Blame::kOwn, Blame::kOtherIfAnyFailed}) {
    for (const Runner& runner : runners_) {
      if (runner.error && runner.blame == blame) return runner.error;
    }
  }
  return nullptr;
}

}  // namespace cohort
