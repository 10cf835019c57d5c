// Made tests/checkpoint/recorded/version-1/step-7: record FOLDER. It is to be run when the version of the
// format changes, into a folder of that version; what older versions wrote stays as it is.
#include <cstdio>

#include <cohort/checkpoint/checkpoint.h>
#include <cohort/strategy/multi_worker_mirrored_strategy.h>

#include "../../strategy/fake_cluster.h"
#include "values.h"

int main(int argc, char** argv) {
  using namespace cohort;
  namespace test = cohort::testing;
  if (argc != 2) {
    std::fputs("usage: record FOLDER\n", stderr);
    return 2;
  }
  test::for_each_worker(2, [&](Bootstrap& worker) {
    const MultiWorkerMirroredStrategy strategy(worker, {.timeout_seconds = 60}, cpu_devices(1));
    const auto scope = strategy.scope();
    const Variable table({.initial_value = test::recorded_table()});
    std::string text = test::kRecordedText;
    Checkpoint checkpoint(strategy);
    checkpoint.add("table", table);
    checkpoint.add("text", text);
    for (const auto& [name, tensor] : test::recorded_tensors()) checkpoint.add(name, tensor);
    checkpoint.save(argv[1], test::kRecordedStep);
  });
  return 0;
}
