#include "replica_run.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

ReplicaRun::ReplicaRun(StrategyExtended& extended, const std::function<void(ReplicaContext&)>& body)
    : extended_(extended), body_(body), seats_(static_cast<std::size_t>(extended.local_replicas())) {}

void ReplicaRun::execute(std::vector<std::unique_ptr<DeviceThread>>& team) {
  for (std::size_t replica = 0; replica < seats_.size(); ++replica) {
    team[replica]->submit([this, replica] { run_replica(static_cast<int>(replica)); });
  }
  serve_merges();
  for (const auto& thread : team) thread->wait();
  if (const std::exception_ptr error = first_error()) std::rethrow_exception(error);
}

void ReplicaRun::run_replica(int local_replica) {
  Seat& seat = seats_[static_cast<std::size_t>(local_replica)];
  ReplicaContext replica(extended_, local_replica, *this);
  const ContextScope scope(
      {ContextKind::kReplica, &extended_, &replica, local_replica, replica.device(), this});
  const InheritedCreators inherited(creators_);
  try {
    body_(replica);
    const std::lock_guard lock(mutex_);
    seat.phase = Phase::kDone;
    changed_.notify_all();
  } catch (const ReplicaGivesUp&) {
    record_failure(local_replica, nullptr, Blame::kOther);
  } catch (const Aborted&) {
    record_failure(local_replica, std::current_exception(), Blame::kOtherIfAnyFailed);
  } catch (...) {
    record_failure(local_replica, std::current_exception(), Blame::kOwn);
  }
}

void ReplicaRun::record_failure(int local_replica, const std::exception_ptr& error, Blame blame) {
  Seat& seat = seats_[static_cast<std::size_t>(local_replica)];
  {
    const std::lock_guard lock(mutex_);
    seat.phase = Phase::kFailed;
    seat.gave_up = blame == Blame::kOther || (blame == Blame::kOtherIfAnyFailed && ending_);
    seat.error = error;
    ending_ = true;
    changed_.notify_all();
    if (seat.gave_up) return;
  }
  // Others may wait for this replica in a collective.
  extended_.communicator(local_replica)
      .abort(Aborted("replica {} failed first: {}", extended_.first_replica_id() + local_replica,
                     what_of(error)));
}

std::shared_ptr<void> ReplicaRun::meet(int local_replica, MergeRequest& request) {
  Seat& seat = seats_[static_cast<std::size_t>(local_replica)];
  std::unique_lock lock(mutex_);
  if (ending_) throw ReplicaGivesUp();
  seat.phase = Phase::kMerging;
  seat.request = &request;
  changed_.notify_all();
  changed_.wait(lock, [&] { return seat.phase == Phase::kRunning || ending_; });
  if (seat.phase != Phase::kRunning) throw ReplicaGivesUp();
  return std::move(seat.merged);
}

bool ReplicaRun::all_paused() const {
  return std::none_of(seats_.begin(), seats_.end(),
                      [](const Seat& seat) { return seat.phase == Phase::kRunning; });
}

void ReplicaRun::serve_merges() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || all_paused(); });
    if (ending_) return;
    const auto merging = std::count_if(seats_.begin(), seats_.end(),
                                       [](const Seat& seat) { return seat.phase == Phase::kMerging; });
    if (merging == 0) return;
    if (merging == static_cast<std::ptrdiff_t>(seats_.size())) {
      merge_all(lock);
    } else {
      merge_error_ = unequal_merges();
    }
    ending_ = ending_ || merge_error_ != nullptr;
    changed_.notify_all();
  }
}

void ReplicaRun::merge_all(std::unique_lock<std::mutex>& lock) {
  std::vector<void*> arguments;
  for (std::size_t replica = 0; replica < seats_.size(); ++replica) {
    const MergeRequest& request = *seats_[replica].request;
    if (request.call != seats_.front().request->call) {
      merge_error_ = std::make_exception_ptr(WrongContext(
          "replicas meet in different calls: replica {} in {}, replica {} in {}; every replica must make the "
          "same calls in the same order",
          extended_.first_replica_id() + static_cast<int>(replica), request.call,
          extended_.first_replica_id(), seats_.front().request->call));
      return;
    }
    if (request.argument_types != seats_.front().request->argument_types) {
      merge_error_ = std::make_exception_ptr(InvalidArgument(
          "{} of {}: replica {} passes arguments, or a function with a result, of "
          "other types than replica {}",
          request.call, extended_.strategy_name(), extended_.first_replica_id() + static_cast<int>(replica),
          extended_.first_replica_id()));
      return;
    }
    arguments.push_back(request.arguments);
  }
  const MergeRequest& first = *seats_.front().request;
  lock.unlock();
  std::shared_ptr<void> merged;
  std::exception_ptr error;
  try {
    const ContextScope scope(ContextMode::cross_replica(&extended_));
    merged = first.merge(arguments);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  merge_error_ = error;
  if (error) return;
  for (Seat& seat : seats_) {
    seat.merged = merged;
    seat.request = nullptr;
    ++seat.merges;
    seat.phase = Phase::kRunning;
  }
}

std::exception_ptr ReplicaRun::unequal_merges() const {
  std::vector<int> waiting;
  std::vector<int> finished;
  for (std::size_t replica = 0; replica < seats_.size(); ++replica) {
    const int id = extended_.first_replica_id() + static_cast<int>(replica);
    (seats_[replica].phase == Phase::kMerging ? waiting : finished).push_back(id);
  }
  const auto waits = [](const Seat& seat) { return seat.phase == Phase::kMerging; };
  const std::string_view call = std::ranges::find_if(seats_, waits)->request->call;
  return std::make_exception_ptr(WrongContext(
      "replicas made a different number of {0} calls: [{1}] wait in call {2}, {0}, while [{3}] have "
      "returned from the replica function; every replica must make the same calls equally often",
      call, fmt::join(waiting, ", "), seats_.front().merges + 1, fmt::join(finished, ", ")));
}

std::exception_ptr ReplicaRun::first_error() const {
  if (merge_error_) return merge_error_;
  for (const Seat& seat : seats_) {
    if (seat.error && !seat.gave_up) return seat.error;
  }
  return nullptr;
}

}  // namespace cohort
