// CUDA does not notice everything that makes a GPU's results invalid: when members of a collective are lost,
// it is given up, and its stream goes on with whatever is in the tensor. Code that queues such work registers
// a Guard for the GPU, which is asked whenever the host waits for that GPU. So an error is thrown where the
// program would read the result, and a wait for work that cannot finish ends.
#pragma once

#include <functional>

#include <cohort/device/device.h>

namespace cohort::cuda {

class Guard {
 public:
  virtual ~Guard() = default;

  /// Called by any thread, also by several at once, while it waits for the GPU and once more at the end of
  /// the wait.
  /// @throws if queued work has failed and the error has not been reported yet.
  virtual void require_sound() = 0;
};

/// Registers `guard` for `device`; the destructor waits for running calls of it.
class [[nodiscard]] GuardScope {
 public:
  GuardScope(Device device, Guard& guard);
  ~GuardScope();

  GuardScope(const GuardScope&) = delete;
  GuardScope& operator=(const GuardScope&) = delete;

 private:
  Device device_;
  Guard& guard_;
};

/// How a host thread waits for a GPU: it polls, and asks the GPU's guards. Returns once `done()` is true.
/// @throws what a guard of the GPU throws; WrongContext while the GPU is
/// captured.
void wait_on_host(Device device, const std::function<bool()>& done);

}  // namespace cohort::cuda
