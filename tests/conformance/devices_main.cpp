// The recorded lines of one process: several devices, or no strategy at all.
#include <cstdlib>
#include <iostream>

#include "layout.h"
#include "replay.h"

int main(int argc, char** argv) {
  using namespace cohort::conformance;
  const Recording recording = read_records(argc, argv);
  Replay replay(recording, nullptr);
  Tally tally;
  for (const std::string_view layout : kDeviceLayouts) tally += replay.replay(layout);
  tally.failed += replay.check_tables();
  std::cout << describe(tally) << '\n';
  return tally.failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
