// CUDA does not know of everything that makes a GPU's results worthless: a collective whose members are
// lost is given up, and its stream goes on with whatever is in the tensor. Who queues such work puts a
// Guard over the GPU, which is asked whenever the host waits for it. So an error comes out where the
// program would read the result, and a wait for a GPU that will never get there ends.
#pragma once

#include <cohort/device/device.h>

namespace cohort::cuda {

class Guard {
 public:
  virtual ~Guard() = default;

  /// Called by any thread, and by several, while it waits for the GPU and once more in the end.
  /// @throws the error of what it has queued, unless somebody has been told.
  virtual void require_sound() = 0;
};

/// Puts `guard` over `device` as long as this lives. Its end waits for calls of the guard.
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

}  // namespace cohort::cuda
