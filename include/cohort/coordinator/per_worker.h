// A value that every worker has one of, of its own: a dataset, an iterator, a table. Functions that are given
// one get the element of the worker that runs them. A worker that comes later, or again, makes its own.
//
// A handle: when the last one has gone, and the calls that were given it have ended, the workers free their
// elements, within about a second. Any thread may copy and drop handles.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace cohort {

namespace coordinator {

/// The numbers of the PerWorkers without handles, until the workers are told. Internal.
class ReleasedPerWorkers {
 public:
  void add(std::uint64_t number) noexcept;
  [[nodiscard]] std::vector<std::uint64_t> take();

 private:
  std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;
};

/// What all handles of a PerWorker share, and the calls that use it. Internal.
class PerWorkerState {
 public:
  PerWorkerState(std::uint64_t number, std::shared_ptr<ReleasedPerWorkers> released) noexcept
      : number_(number), released_(std::move(released)) {}
  ~PerWorkerState() { released_->add(number_); }
  PerWorkerState(const PerWorkerState&) = delete;
  PerWorkerState& operator=(const PerWorkerState&) = delete;

  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

 private:
  std::uint64_t number_;
  std::shared_ptr<ReleasedPerWorkers> released_;
};

}  // namespace coordinator

template <class T>
class PerWorker {
 public:
  /// Internal: coordinators make them.
  explicit PerWorker(std::shared_ptr<const coordinator::PerWorkerState> state) noexcept
      : state_(std::move(state)) {}
  [[nodiscard]] const std::shared_ptr<const coordinator::PerWorkerState>& state() const noexcept {
    return state_;
  }

 private:
  std::shared_ptr<const coordinator::PerWorkerState> state_;
};

}  // namespace cohort
