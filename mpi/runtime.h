// What all communicators of a Session share. They co-own it, so it lives as long as any
// of them, also beyond the Session.
#pragma once

#include <atomic>

#include <cohort/base/error.h>
#include <cohort/cluster/peer_watch.h>

#include "gate.h"
#include "operators.h"

namespace cohort::mpi {

class Runtime {
 public:
  explicit Runtime(int thread_level) : gate_(thread_level) {}

  [[nodiscard]] Gate& gate() noexcept { return gate_; }
  [[nodiscard]] const Operators& operators() const noexcept { return operators_; }

  /// The first fault among the other workers, or null.
  [[nodiscard]] const Error* fault() const noexcept {
    const PeerWatch* watch = watch_.load(std::memory_order_acquire);
    return watch == nullptr ? nullptr : watch->fault();
  }

  /// From here on communicators look at `watch`, until it is replaced by null.
  void set_watch(const PeerWatch* watch) noexcept { watch_.store(watch, std::memory_order_release); }

 private:
  Gate gate_;
  Operators operators_;
  std::atomic<const PeerWatch*> watch_{nullptr};
};

}  // namespace cohort::mpi
