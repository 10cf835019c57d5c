// Measures the input pipeline in one process: in-memory numbers, and files of several formats, element by
// element and in batches that one replica gets or two share; how long a program that computes waits for
// its batches; and, as what the machine allows, read() of the same files. The files have just been
// written, so they come from the system's cache and not from a disk.
#pragma once

#include "input/input_options.h"
#include "input/input_result.h"
#include "tick_clock.h"

namespace cohort::bench {

/// @throws Error when the files cannot be written.
[[nodiscard]] InputResult measure_input(const InputBenchOptions& options, const TickClock& clock);

}  // namespace cohort::bench
