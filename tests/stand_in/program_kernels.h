// Kernels of a program's own on the stand-in for GPUs: a library that is preloaded beside it defines this
// function, and so says what each does on the host.
#pragma once

#include <functional>

namespace gpu_stand_in {

/// A kernel with its only argument copied, as a launch copies it.
using HostKernel = std::function<void()> (*)(const void* argument);

}  // namespace gpu_stand_in

/// The kernel of this name, as the CUDA compiler writes it; null for one that it does not know. Weak, for
/// most programs have no such library.
extern "C" [[gnu::weak]] gpu_stand_in::HostKernel gpu_stand_in_kernel_of_program(const char* name);
