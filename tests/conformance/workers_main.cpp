// All recorded lines but those whose tasks are processes, under the launcher with two ranks. Worker 0 replays
// those of one process while worker 1 waits; then both replay those of two workers.
#include <cstdlib>
#include <iostream>

#include <cohort/mpi/session.h>

#include "layout.h"
#include "replay.h"

int main(int argc, char** argv) {
  using namespace cohort::conformance;
  cohort::mpi::Session session(argc, argv);
  const Recording recording = read_records(argc, argv);
  Replay replay(recording, &session);
  Tally tally;
  if (session.is_chief()) {
    for (const std::string_view layout : kDeviceLayouts) tally += replay.replay(layout);
  }
  tally += replay.replay(kWorkersLayout);
  if (session.is_chief()) {
    tally.failed += replay.check_tables();
    std::cout << describe(tally) << '\n';
  }
  return tally.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
